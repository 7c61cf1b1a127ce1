package exit

import (
	"errors"
	"fmt"
)

// An Error has an exit code and a hint beside it.
type Error struct {
	Code Code
	Hint string
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Fail gives err an exit code and a hint at what to do ("" where there is none). The innermost code
// and hint win: who was nearest to the cause knew best.
func Fail(code Code, hint string, err error) error {
	var inner *Error
	if err == nil || errors.As(err, &inner) {
		return err
	}
	return &Error{code, hint, err}
}

// Failf is Fail with an error made here.
func Failf(code Code, hint, format string, args ...any) error {
	return Fail(code, hint, fmt.Errorf(format, args...))
}

// Silent ends with a code and says nothing: who returns it, or the program that was run, has said all.
type Silent int

func (s Silent) Error() string { return fmt.Sprintf("ends with exit code %d", int(s)) }
