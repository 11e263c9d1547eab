//! The simulated client: one process's connection to the service.

use crate::protocol::sim::service::{CreateFate, End, Fate, LOST, Record, SimService, fault};
use crate::protocol::sim::world::World;
use futures_util::StreamExt;
use scribed::testing::client::contract::{
    AcceptedUpload, Client, CreatePermit, CreateRequest, Creation, Identity, ListFault, ListItem, ListPage, ListedFile,
    RecordEvidence, RecordMark, RecordState, RequestAudio, UploadFile,
};
use scribed::testing::clock::Clock;
use scribed::testing::domain::fault::{Fault, FaultKind};
use scribed::testing::domain::names::{Hash, ServiceName, Timestamp, TranscriptionId, UploadId};
use scribed::testing::domain::stage::AudioAmount;
use scribed::testing::domain::token::{RESERVED_KEY, Token};
use scribed::testing::wire::page::ListQuery;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub struct Scripted {
    world: Arc<World>,
    service: Arc<SimService>,
    life: u32,
    identity: Identity,
    heard: Mutex<Option<Timestamp>>,
}

const AUDIO: AudioAmount = AudioAmount { millis: 60_000, channels: 1, billed: None };

impl Scripted {
    pub fn new(world: Arc<World>, life: u32, key: String) -> Self {
        let identity =
            Identity { service: ServiceName::new("default"), origin: "https://stt".to_owned(), key, is_own: false };
        Self { service: Arc::clone(&world.service), world, life, identity, heard: Mutex::default() }
    }

    fn truth(&self) -> Duration {
        self.service.clock.truth()
    }

    fn fault(&self, fate: Fate) -> Fault {
        fault(fate, self.service.clock.now())
    }

    /// On the way, and what becomes of it there.
    async fn ask(&self, what: &str, seconds: u64) -> Result<(), Fault> {
        self.world.point(self.life, what).await;
        let fate = self.service.ledger().fate(self.truth(), self.life, what);
        let wait = self.service.ledger().rng.u64(20..=seconds * 1000);
        self.world.trace(format!("[{}] {what}: {fate:?}", self.life));
        tokio::time::sleep(Duration::from_millis(if fate == Fate::Refused { 5 } else { wait })).await;
        if fate != Fate::Refused {
            *self.heard.lock().unwrap() = Some(self.service.clock.date());
        }
        self.service.ledger().answered(self.truth(), self.life, fate);
        let result = if fate == Fate::Good { Ok(()) } else { Err(self.fault(fate)) };
        self.world.point(self.life, "answer").await;
        result
    }

    fn struck<T>(&self, what: &str, result: Result<T, Fault>) -> Result<T, Fault> {
        match &result {
            Ok(_) => self.service.ledger().strike(what, false),
            Err(fault) if fault.kind == FaultKind::Broken => self.service.ledger().strike(what, true),
            Err(_) => {}
        }
        result
    }

    /// An answer that never comes, with a moment in which the machine may fall asleep.
    async fn hang(&self) {
        tokio::time::sleep(LOST / 2).await;
        self.world.point(self.life, "hanging").await;
        tokio::time::sleep(LOST / 2).await;
    }

    async fn created(&self, fate: CreateFate, request: &CreateRequest) -> Creation {
        let asked = self.truth();
        let token = request.metadata.get(RESERVED_KEY).and_then(|token| token.as_str()).and_then(Token::parse);
        let params = serde_json::Value::Object(request.params.clone()).to_string();
        let accept = |after| {
            let callback = request.callback.as_ref().map(|callback| callback.url.clone());
            let (token, params) = (token.clone(), params.clone());
            let id = self.service.ledger().accept(asked, after, token, uploaded(request), params, callback);
            self.service.calling.notify_one();
            self.world.trace(format!("[{}] {id} will be accepted in {after:?}", self.life));
            id
        };
        let answer_in = Duration::from_millis(self.service.ledger().rng.u64(20..2_000));
        let unknown = |words: &str| Creation::Unknown(Fault::new(FaultKind::Unknown, words, self.service.clock.now()));
        match fate {
            CreateFate::Plain(Fate::Good) => {
                let id = accept(Duration::ZERO);
                // The crash after the effect and before its answer.
                self.world.point(self.life, "created").await;
                tokio::time::sleep(answer_in).await;
                Creation::Accepted(TranscriptionId::new(id))
            }
            CreateFate::Plain(fate) => {
                tokio::time::sleep(answer_in).await;
                self.service.ledger().answered(self.truth(), self.life, fate);
                Creation::NotAccepted(self.fault(fate))
            }
            CreateFate::AnswerLost(after) => {
                accept(after);
                self.hang().await;
                unknown("timed out")
            }
            CreateFate::Hangs => {
                self.hang().await;
                unknown("timed out")
            }
            CreateFate::Wrong { accepted } => {
                if accepted {
                    accept(Duration::ZERO);
                }
                tokio::time::sleep(answer_in).await;
                unknown("500")
            }
        }
    }
}

#[async_trait::async_trait]
impl Client for Scripted {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn last_date(&self) -> Option<Timestamp> {
        *self.heard.lock().unwrap()
    }

    async fn upload(&self, file: UploadFile) -> Result<AcceptedUpload, Fault> {
        let mut bytes = Vec::new();
        let mut pieces = (file.open)();
        while let Some(piece) = pieces.next().await {
            let unreadable =
                |error: std::io::Error| Fault::new(FaultKind::Unreadable, error.to_string(), self.service.clock.now());
            bytes.extend_from_slice(&piece.map_err(unreadable)?);
        }
        let content = Hash::of(&bytes);
        let key = format!("upload {content}");
        self.struck(&key, self.ask("upload", 20).await)?;
        let upload = self.service.ledger().add_upload(content);
        Ok(AcceptedUpload { upload, audio: AUDIO, size: Some(bytes.len() as u64) })
    }

    async fn turn(&self) -> CreatePermit {
        self.world.point(self.life, "turn").await;
        CreatePermit::come()
    }

    async fn create(&self, _turn: CreatePermit, request: CreateRequest) -> Creation {
        let token = request.metadata.get(RESERVED_KEY).and_then(|token| token.as_str()).and_then(Token::parse);
        if let Some(token) = token.filter(|token| !self.world.may_buy(token.job)) {
            let words = format!("a create was begun outside its window: {token:?} at {:?}", self.world.clock.now());
            self.service.ledger().wrongs.push(words);
        }
        self.world.check_allowed();
        self.world.point(self.life, "create").await;
        let fate = self.service.ledger().create_fate(self.truth(), self.life);
        let token = request.metadata.get(RESERVED_KEY).and_then(|token| token.as_str()).unwrap_or_default().to_owned();
        self.world.trace(format!("[{}] create {}: {fate:?}", self.life, short(&token)));
        let creation = self.created(fate, &request).await;
        self.world.point(self.life, "created").await;
        if !matches!(creation, Creation::NotAccepted(Fault { kind: FaultKind::Unreachable, .. })) {
            *self.heard.lock().unwrap() = Some(self.service.clock.date());
        }
        match creation {
            Creation::Accepted(_) => self.service.ledger().strike(&format!("create {token}"), false),
            Creation::Unknown(_) => self.service.ledger().strike(&format!("create {token}"), true),
            Creation::NotAccepted(_) => {}
        }
        creation
    }

    async fn read(&self, id: &TranscriptionId) -> Result<RecordState, Fault> {
        let key = format!("read {id}");
        self.struck(&key, self.ask(&key, 2).await)?;
        let now = self.truth();
        let record = self.service.ledger().record(id).cloned();
        let lost = |kind, words: &str| Ok(RecordState::Lost(Fault::new(kind, words, self.service.clock.now())));
        match record {
            Some(record) if record.listed > now => lost(FaultKind::Gone, "not yet"),
            Some(record) if record.end == End::Never || record.ends > now => {
                let status = if self.service.ledger().rng.bool() { "queued" } else { "processing" };
                Ok(RecordState::Pending(status.to_owned()))
            }
            Some(record) => match record.end {
                End::Error(code) => lost(FaultKind::Dead { code }, "the transcription ended in error"),
                End::Gone => lost(FaultKind::Gone, "404"),
                _ => {
                    let took = Some(record.ends - record.created);
                    let record = self.service.ledger().mixed_up(record, now);
                    Ok(RecordState::Done { raw: answer(&record), audio: AUDIO, took, evidence: evidence(&record) })
                }
            },
            None => lost(FaultKind::Gone, "404"),
        }
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, ListFault> {
        let what = if query.offset > 0 { "list (on its way)" } else { "list" };
        self.ask(what, 2).await.map_err(|fault| match fault.kind {
            FaultKind::Refused { .. } => ListFault::None(fault),
            _ => ListFault::Now(fault),
        })?;
        let now = self.truth();
        let mut ledger = self.service.ledger();
        let all = ledger.list(now, query.after_date);
        let limit = usize::try_from(query.limit).unwrap().min(ledger.weather.page_limit);
        let from = usize::try_from(query.offset).unwrap().min(all.len());
        let to = (from + limit).min(all.len());
        let listed = |record: &Record| ListItem {
            id: TranscriptionId::new(record.id.clone()),
            created: Some(crate::protocol::sim::clock::date(record.created)),
            token: record.token.clone(),
            billed: None,
            status: record.status(now),
            // Whoever else uses the account marks its records too.
            has_metadata: true,
            file: ListedFile::default(),
        };
        Ok(ListPage { items: all[from..to].iter().map(listed).collect(), more: to < all.len(), ..ListPage::default() })
    }
}

/// The transcript of a content says which content it is of.
pub fn words_of(content: Hash) -> String {
    format!("content {}", &content.to_string()[..16])
}

/// What a record says about whose it is. Whoever else uses the account marks its records too.
fn evidence(record: &Record) -> RecordEvidence {
    let mark = record.token.as_ref().map_or(RecordMark::Missing, |token| RecordMark::Text(token.to_string()));
    RecordEvidence { mark, lengths: vec![AUDIO.millis] }
}

fn answer(record: &Record) -> Vec<u8> {
    let metadata = match &record.token {
        Some(token) => json!({ RESERVED_KEY: token.to_string() }),
        None => json!({ "whose": "another's" }),
    };
    let words = words_of(record.content);
    let answer = json!({
        "id": record.id,
        "status": "done",
        "created_at": "2026-01-01T00:00:00Z",
        "custom_metadata": metadata,
        "result": {
            "metadata": { "audio_duration": 60.0, "number_of_distinct_channels": 1 },
            "transcription": {
                "full_transcript": words,
                "languages": ["en"],
                "utterances": [
                    { "start": 0.0, "end": 2.0, "confidence": 1.0, "channel": 0, "text": words, "language": "en" }
                ],
            },
        },
    });
    serde_json::to_vec(&answer).unwrap()
}

fn short(token: &str) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    match parts.as_slice() {
        [_, content, params, job, purchase_number] => {
            format!("{}.{}.{}.{purchase_number}", &content[..6], &params[..4], &job[..6])
        }
        _ => token.to_owned(),
    }
}

/// What every job of the simulation sends.
fn uploaded(request: &CreateRequest) -> &UploadId {
    match &request.audio {
        RequestAudio::Upload(id) => id,
        RequestAudio::Url(url) => panic!("nothing here is fetched: {url:?}"),
    }
}
