//! Mutations of scribed that the simulation must detect: each is a wrapper around an interface, or a setting.

use scribed::testing::client::contract::{
    AcceptedUpload, Client, CreatePermit, CreateRequest, Creation, Identity, ListFault, ListPage, RecordEvidence,
    RecordState, UploadFile,
};
use scribed::testing::domain::fault::Fault;
use scribed::testing::domain::names::{Timestamp, TranscriptionId};
use scribed::testing::wire::page::ListQuery;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Nothing is wrong.
    None,
    /// The list is said to be complete and empty.
    NoListCheck,
    /// The list is walked before its lag is over.
    NoLag,
    /// The intent is durable only after its create.
    LateIntent,
    /// A layer repeats a create that became unknown.
    CreateRepeated,
    /// An empty store is believed.
    SuspectBelieved,
    /// What is reserved need not fit into the budget.
    NoWall,
    /// Nobody looks at the windows.
    NoWindow,
    /// Whoever is ready reserves, whoever comes before it.
    NoLine,
    /// Nobody looks whose record a read was answered with.
    AnswersBelieved,
    /// A total budget that is lowered stays what it was.
    NoFall,
}

/// A client under a mutation.
pub struct Mutant<C> {
    pub inner: C,
    pub mutation: Mutation,
}

#[async_trait::async_trait]
impl<C: Client> Client for Mutant<C> {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn last_date(&self) -> Option<Timestamp> {
        self.inner.last_date()
    }

    async fn upload(&self, file: UploadFile) -> Result<AcceptedUpload, Fault> {
        self.inner.upload(file).await
    }

    async fn turn(&self) -> CreatePermit {
        self.inner.turn().await
    }

    async fn create(&self, turn: CreatePermit, request: CreateRequest) -> Creation {
        match self.inner.create(turn, request.clone()).await {
            Creation::Unknown(_) if self.mutation == Mutation::CreateRepeated => {
                self.inner.create(CreatePermit::come(), request).await
            }
            creation => creation,
        }
    }

    async fn read(&self, id: &TranscriptionId) -> Result<RecordState, Fault> {
        match self.inner.read(id).await? {
            RecordState::Done { raw, audio, took, .. } if self.mutation == Mutation::AnswersBelieved => {
                Ok(RecordState::Done { raw, audio, took, evidence: RecordEvidence::default() })
            }
            state => Ok(state),
        }
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, ListFault> {
        if self.mutation == Mutation::NoListCheck {
            return Ok(ListPage::default());
        }
        self.inner.list(query).await
    }
}
