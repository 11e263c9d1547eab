//! Words that are no names and no values, whatever stands before them.

use std::collections::HashSet;
use std::sync::LazyLock;

/// The words of English grammar, and those that often follow "my name is", "mister" or "the password is".
const WORDS: &str = "a about after again all also always am an and another any anyone anything are aren't around as ask at away \
    back be because been before being believe best better between both but by bye call called calling calls came can can't \
    come coming could couldn't day did didn't do does doesn't doing don't done down each either else enough even ever every \
    everyone everything fine first for from gave get gets getting give go goes going gone good got great guess guy had \
    happy hadn't has hasn't have haven't having he he'll he'd he's hello help her here hers hey hi him his home how i i'd i'll i'm \
    i've if in into is isn't it it'll its it's just kind know last left let let's like little long look looking looks made \
    make makes making many may maybe me mean met might mine more morning most much must my need needs never new next nice \
    no nobody none nor not nothing now number of off oh ok okay old on once one only or other our ours out over own people \
    please put really right said same saw say saying says see seen sent set shall she she'd she'll she's should shouldn't show since \
    so some somebody someone something soon sorry sort speak speaking still such sure take taken takes talk talking tell than \
    thank thanks that that's the their theirs them then there there's these they they'd they'll they're they've thing think this those \
    though through time to today together told tomorrow too took try trying two under until up upon us use used very want \
    wanted wants was wasn't way we we'd we'll we're we've well went were weren't what what's when where where's which while \
    who who's whom whose why will wish with without won't would wouldn't yeah year years yes yesterday yet you you'd you'll \
    you're you've your yours yourself myself himself herself three four five six seven eight nine ten zero o'clock a.m p.m am pm \
    sir madam ma'am mister mrs miss ms dr doctor reset change changed changing forgot forgotten incorrect correct wrong \
    invalid expired required protected field policy manager account address email mail phone card code name names password \
    username login user street avenue road city state country zip monday tuesday wednesday thursday friday saturday sunday \
    january february march april june july august september october november december interested available afraid";

/// Whether a word, in lower case, is one of them.
pub(super) fn is_common(word: &str) -> bool {
    static ALL: LazyLock<HashSet<&str>> = LazyLock::new(|| WORDS.split_whitespace().collect());
    ALL.contains(word)
}
