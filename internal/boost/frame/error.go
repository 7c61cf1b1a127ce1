package frame

import "fmt"

// An Error is what is wrong with a frame that a peer has sent.
type Error struct {
	Type    Type
	Session uint64 // 0: none, or it was not read
	Field   string // which part of the frame
	Got     string
	Want    string
}

func (e *Error) Error() string {
	of := ""
	if e.Session != 0 {
		of = fmt.Sprintf(" of session %#x", e.Session)
	}
	return fmt.Sprintf("frame %v%s: %s is %s, expected %s", e.Type, of, e.Field, e.Got, e.Want)
}
