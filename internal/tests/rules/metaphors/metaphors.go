// Package metaphors knows the words for which the field has terms, docs/glossary.md: a review of the tree found them used in
// place of those.
package metaphors

import (
	"path"
	"regexp"
	"strings"
)

// terms has what is said instead of each word.
var terms = map[string]string{
	"grave": "ended", "bury": "ended, reap", "buried": "ended, reaped", "exhume": "look up what ended", "tombstone": "ended",
	"farewell": "notice, FLOW-FAIL", "convict": "suspect, gone", "acquit": "answered", "heir": "successor", "reign": "term", "seat": "lead",
	"desk": "API, inbox", "stranger": "unknown sender, unauthenticated", "astray": "unsolicited", "welcome": "accept, admit", "unwelcome": "denied",
	"story": "history", "chapter": "event", "biography": "history", "lieinwait": "wait, block",
}

// word finds the words of which names and sentences are made: takeBuriedDown has three.
var word = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// A Use is one of them in a text.
type Use struct {
	Line       int
	Word, Term string // what is said, and what would be
}

// In finds them in a text, in names too.
func In(text string) (all []Use) {
	line := 0
	for s := range strings.Lines(text) {
		line++
		words := word.FindAllString(s, -1)
		for i, w := range words {
			if u, ok := use(w); ok {
				all = append(all, Use{line, w, u})
			}
			if three := strings.Join(words[i:min(i+3, len(words))], ""); strings.EqualFold(three, "lieInWait") {
				all = append(all, Use{line, three, terms["lieinwait"]})
			}
		}
	}
	return all
}

// use is the term for a word, also for one of many and for what was done.
func use(w string) (term string, ok bool) {
	w = strings.ToLower(w)
	for _, end := range []string{"", "s", "d", "ed", "ing", "es"} {
		if root, cut := strings.CutSuffix(w, end); cut {
			if term, ok = terms[root]; ok {
				return term, true
			}
		}
	}
	return "", strings.HasPrefix(w, "stories") || strings.HasPrefix(w, "biographies")
}

// Exempt reports whether a file may have the words: what lists them, by its path in the repository.
func Exempt(file string) bool { return strings.HasPrefix(path.Clean(file), "internal/tests/rules/") }
