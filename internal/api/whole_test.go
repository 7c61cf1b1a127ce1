package api

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAnAnswerIsWholeOrNotThere(t *testing.T) {
	cut := errors.New("cut")
	for name, c := range map[string]struct {
		kind string
		body io.Reader
		want int // bytes that are passed on
		err  error
	}{
		"whole":                    {"application/json", strings.NewReader("{}"), 2, nil},
		"cut in the middle":        {"application/proto", io.MultiReader(strings.NewReader("{"), iotest.ErrReader(cut)), 0, cut},
		"a stream, not read ahead": {"application/connect+proto", iotest.ErrReader(cut), 0, nil},
		"a long one":               {"application/proto", strings.NewReader(strings.Repeat("x", mostWhole+7)), mostWhole + 7, nil},
	} {
		resp := &http.Response{Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(c.body)}
		err := Whole(resp)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if got, _ := io.ReadAll(resp.Body); len(got) != c.want {
			t.Errorf("%s: %d bytes are passed on, want %d", name, len(got), c.want)
		}
	}
}
