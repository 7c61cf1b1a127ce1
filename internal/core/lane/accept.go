package lane

import "fmt"

// The words for when the clients of an entry are accepted.
const (
	// Answered is once the server has answered: what the client hears is what the server says.
	Answered = "answered"
	// AtOnce is before: a round trip of the path less, and a server's no comes as a reset of a connection that stood.
	AtOnce = "at-once"
)

// Accepts are the words that ParseAccept knows; the first is the one where nobody says any.
var Accepts = []string{Answered, AtOnce}

// ParseAccept reads one of the words, and reports whether clients are accepted at once.
func ParseAccept(text string) (atOnce bool, err error) {
	switch text {
	case "", Answered:
		return false, nil
	case AtOnce:
		return true, nil
	}
	return false, fmt.Errorf("%.40q: expected %s, or %s", text, Answered, AtOnce)
}

// Accept is the word for it.
func Accept(atOnce bool) string {
	if atOnce {
		return AtOnce
	}
	return Answered
}
