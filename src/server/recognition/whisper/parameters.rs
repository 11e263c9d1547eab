//! The settings of the library as `whisper.h` of whisper.cpp 1.8 and 1.9 lays them out. The library takes them by value
//! and does not check them, so the version is checked before, and the layout by the values that the library presets.

use std::ffi::{c_char, c_int, c_void};

/// A C `bool` that may have any value.
type Flag = u8;

/// `struct whisper_context_params`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ContextParameters {
    use_gpu: Flag,
    flash_attention: Flag,
    gpu_device: c_int,
    dtw_token_timestamps: Flag,
    dtw_heads_preset: c_int,
    dtw_top: c_int,
    dtw_head_count: usize,
    dtw_heads: *const c_void,
    dtw_memory: usize,
}

/// `struct whisper_full_params`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct FullParameters {
    strategy: c_int,
    pub threads: c_int,
    max_text_context: c_int,
    offset_ms: c_int,
    duration_ms: c_int,
    translate: Flag,
    pub no_context: Flag,
    no_timestamps: Flag,
    single_segment: Flag,
    print_special: Flag,
    pub print_progress: Flag,
    pub print_realtime: Flag,
    pub print_timestamps: Flag,
    pub token_timestamps: Flag,
    token_threshold: f32,
    token_sum_threshold: f32,
    max_length: c_int,
    split_on_word: Flag,
    max_tokens: c_int,
    debug_mode: Flag,
    audio_context: c_int,
    find_turns: Flag,
    suppress_regex: *const c_char,
    pub initial_prompt: *const c_char,
    carry_initial_prompt: Flag,
    prompt_tokens: *const i32,
    prompt_token_count: c_int,
    pub language: *const c_char,
    detect_language: Flag,
    suppress_blank: Flag,
    pub suppress_no_speech: Flag,
    temperature: f32,
    max_initial_timestamp: f32,
    length_penalty: f32,
    temperature_step: f32,
    entropy_threshold: f32,
    log_probability_threshold: f32,
    no_speech_threshold: f32,
    best_of: c_int,
    beam_size: c_int,
    patience: f32,
    new_segment_callback: Callback,
    progress_callback: Callback,
    encoder_begin_callback: Callback,
    pub abort_callback: AbortCallback,
    logits_filter_callback: Callback,
    grammar_rules: *const c_void,
    grammar_rule_count: usize,
    grammar_first_rule: usize,
    grammar_penalty: f32,
    find_speech: Flag,
    speech_model: *const c_char,
    speech: SpeechParameters,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Callback {
    function: *const c_void,
    data: *mut c_void,
}

/// Asked again and again during the work; ends it by returning true.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct AbortCallback {
    pub function: Option<unsafe extern "C" fn(*mut c_void) -> bool>,
    pub data: *mut c_void,
}

/// `struct whisper_vad_params`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct SpeechParameters {
    threshold: f32,
    min_speech_ms: c_int,
    min_silence_ms: c_int,
    max_speech_seconds: f32,
    pad_ms: c_int,
    overlap_seconds: f32,
}

/// `whisper_sampling_strategy`: beam search finds better words than greedy search, as OpenAI's own program does it.
pub(super) const BEAM_SEARCH: c_int = 1;

impl FullParameters {
    /// Whether these presets of the library are those of the layout that this file has. A field that has moved gives a
    /// length, a threshold or a pointer that is none of these.
    pub fn are_known_presets(&self) -> bool {
        let numbers = (self.strategy, self.offset_ms, self.max_length, self.max_tokens, self.audio_context);
        let thresholds = (self.token_threshold, self.token_sum_threshold, self.temperature_step);
        let fallback = (self.entropy_threshold, self.log_probability_threshold, self.no_speech_threshold);
        let callbacks = [self.new_segment_callback, self.progress_callback, self.logits_filter_callback];
        numbers == (BEAM_SEARCH, 0, 0, 0, 0)
            && self.max_text_context == 16_384
            && thresholds == (0.01, 0.01, 0.2)
            && fallback == (2.4, -1.0, 0.6)
            && (self.max_initial_timestamp, self.length_penalty) == (1.0, -1.0)
            && (self.beam_size, self.patience, self.grammar_penalty) == (5, -1.0, 100.0)
            && callbacks.iter().all(|callback| callback.function.is_null() && callback.data.is_null())
            && self.initial_prompt.is_null()
            && self.prompt_tokens.is_null()
            && !self.language.is_null()
            && self.find_speech == 0
            && (self.speech.threshold, self.speech.min_speech_ms, self.speech.overlap_seconds) == (0.5, 250, 0.1)
    }
}
