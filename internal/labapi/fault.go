package labapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/ovs"
)

// A Fault is the answer to a request that failed.
type Fault struct {
	Status int         `json:"status"`          // of HTTP; in a stream, what it would have been
	Error  string      `json:"error"`           // all that is to be said, lines of files included
	Lines  []FaultLine `json:"lines,omitempty"` // of a lab file, each mistake for itself
}

// A FaultLine is one mistake in a lab file.
type FaultLine struct {
	File string `json:"file"` // as the request called it
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
}

// A refusal is an error whose status is known where it is made.
type refusal struct {
	status int
	error
}

func (r refusal) Unwrap() error { return r.error }

func refuse(status int, format string, args ...any) error {
	return refusal{status, fmt.Errorf(format, args...)}
}

func bad(format string, args ...any) error { return refuse(http.StatusBadRequest, format, args...) }
func notFound(format string, args ...any) error {
	return refuse(http.StatusNotFound, format, args...)
}

// fault says what went wrong in the terms of HTTP.
func fault(err error) Fault {
	f := Fault{Status: statusOf(err), Error: err.Error()}
	var lines lab.Errors
	if errors.As(err, &lines) {
		for _, l := range lines {
			f.Lines = append(f.Lines, FaultLine{l.Path, l.Line, l.Text})
		}
	}
	return f
}

func statusOf(err error) int {
	var known refusal
	var lines lab.Errors
	var busy *lab.BusyError
	var missing *ovs.MissingError
	switch {
	case errors.As(err, &known):
		return known.status
	case errors.As(err, &lines):
		return http.StatusUnprocessableEntity
	case errors.As(err, &busy), errors.Is(err, lab.ErrUp):
		return http.StatusConflict
	case errors.Is(err, lab.ErrNone), errors.Is(err, lab.ErrNoEngine), errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, lab.ErrRoot), errors.As(err, &missing), errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func fail(w http.ResponseWriter, err error) {
	f := fault(err)
	send(w, f.Status, f)
}

// send writes the whole answer. Whoever went away does not get it.
func send(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("labapi: %T cannot be written as JSON: %v", body, err)) // our types all can
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(append(text, '\n')) //nolint:errcheck // the other side went away
}
