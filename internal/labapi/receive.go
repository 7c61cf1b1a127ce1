package labapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// receive reads the body of a request into v. It reads to the end: only then does the server notice that the
// other side goes away.
func receive(r *http.Request, v any) error {
	text, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", large.Limit)
	}
	if err != nil {
		return bad("read the body: %w", err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	return decode(text, v)
}

// decode is strict: a key that is misspelled would otherwise do nothing, and nobody would know.
func decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bad("the body is not the JSON that is expected here: %w", at(text, err))
	}
	if rest := bytes.TrimSpace(text[d.InputOffset():]); len(rest) > 0 {
		return bad("the body goes on after its JSON: %.40q", rest)
	}
	return nil
}

// at adds the line to an error of JSON.
func at(text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	case errors.Is(err, io.ErrUnexpectedEOF):
		offset = int64(len(text))
	}
	if offset < 0 || offset > int64(len(text)) {
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:offset], []byte("\n")), err)
}
