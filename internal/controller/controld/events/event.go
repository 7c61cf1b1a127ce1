package events

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// New is one in a line. attrs are pairs.
func New(kind, subject, text string, attrs ...string) *apiv1.Event {
	now := time.Now()
	e := &apiv1.Event{UnixMs: now.UnixMilli(), Time: now.UTC().Format("2006-01-02T15:04:05.000Z07:00"), Kind: kind, Subject: subject, Text: text}
	if len(attrs) > 0 {
		e.Attrs = make(map[string]string, len(attrs)/2)
	}
	for i := 0; i+1 < len(attrs); i += 2 {
		e.Attrs[attrs[i]] = attrs[i+1]
	}
	return e
}

// Changed adds what an order changed, values before and after.
func Changed(e *apiv1.Event, list ...*apiv1.FieldChange) *apiv1.Event {
	for _, c := range list {
		e.Changes = append(e.Changes, &apiv1.FieldChange{Field: c.Field, From: brief(c.From), To: brief(c.To), Why: c.Why})
	}
	return e
}

// brief keeps lists of hundreds of hosts from filling the history.
func brief(text string) string {
	const most = 1000
	if len(text) <= most {
		return text
	}
	text = text[:most]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "..."
}

// Number is a number as an attribute has it.
func Number[T ~uint8 | ~uint16 | ~uint32 | ~uint64](v T) string {
	return strconv.FormatUint(uint64(v), 10)
}

// Because joins what happened and why; reasons from outside are kept to one printable line.
func Because(text, reason string) string {
	if reason == "" {
		return text
	}
	const most = 200
	if len(reason) > most {
		reason = reason[:most] + "..."
	}
	return text + ": " + Printable(reason)
}

// Printable shows what is not as Go does.
func Printable(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// maxReason bounds a sentence from outside.
const maxReason = 1024

// Shortened bounds a sentence from outside.
func Shortened(s string) string { return s[:min(len(s), maxReason)] }

// Said is what an error of the API says, without its code.
func Said(err error) string {
	var known *connect.Error
	if errors.As(err, &known) {
		return known.Message()
	}
	return err.Error()
}

// Counted is "1 flow", "3 flows".
func Counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
