package lane

import "fmt"

// The words for how switches send an entry's connections to agents.
const (
	// Steered connections come to agents at ports of the switches: their rules write an agent's hardware address, and are four for
	// all of an entry's connections.
	Steered = "steer"
	// Rewritten ones come to agents anywhere: switches write an agent's address and port, by four rules for each connection, and the
	// controller is asked for each (tables 3.3.1 and 3.3.3 of the thesis).
	Rewritten = "rewrite"
)

// Modes are the words that ParseMode knows; the first is the one where nobody says any.
var Modes = []string{Steered, Rewritten}

// ParseMode reads one of the words, and reports whether connections are rewritten.
func ParseMode(text string) (rewrite bool, err error) {
	switch text {
	case "", Steered:
		return false, nil
	case Rewritten:
		return true, nil
	}
	return false, fmt.Errorf("%.40q: expected %s, or %s", text, Steered, Rewritten)
}

// Mode is the word for it.
func Mode(rewrite bool) string {
	if rewrite {
		return Rewritten
	}
	return Steered
}
