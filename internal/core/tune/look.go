package tune

import "slices"

// A Look is what an agent waited for at one moment.
type Look uint8

// Looks. Of bytes that are read from an end host there are all but Free, of those that are written to one there are Host,
// Memory and Free.
const (
	Unknown   Look = iota // not seen for long enough, or nothing for most of the time
	Host                  // the end host: it has sent no more, or it takes no more
	Credit                // the other agent has granted no more
	Memory                // this agent has no memory free for more of the session
	Path                  // bytes are there that no connection of the trunk takes
	Processor             // nothing: the agent is at work, or waits for a processor
	Free                  // the end host took all that there was
	looks
)

// lookNames are as messages have them: of what is not known there is nothing to say.
var lookNames = [looks]string{"", "host", "credit", "memory", "path", "processor", "free"}

func (l Look) String() string {
	if l >= looks {
		return lookNames[Unknown]
	}
	return lookNames[l]
}

// LookNamed is the look of that name; Unknown where it is none.
func LookNamed(name string) Look {
	if i := slices.Index(lookNames[:], name); i > 0 {
		return Look(i)
	}
	return Unknown
}
