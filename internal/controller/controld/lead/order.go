package lead

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"scaffold.dev/scaffold/internal/api"
)

// An attempt is one sending of an order that may be sent again; what it came to is noted instead of answered.
type attempt struct{ failed error }

type attemptKey struct{}

// An order is what is asked for, kept whole.
type order struct {
	body []byte
	asks bool // it changes nothing: whoever leads may be asked
}

// longestOrder is more than a change of one service takes.
const longestOrder = 1 << 20

// repeatable keeps an order that has a number, and what changes nothing; nil of everything else, which is sent once.
func repeatable(r *http.Request) *order {
	asks := api.Asks(r.URL.Path)
	if !asks && api.OrderOf(r.URL.Path, r.Header) == "" || r.ContentLength > longestOrder {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, longestOrder+1))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	if err != nil || len(body) > longestOrder {
		return nil
	}
	return &order{body, asks}
}

// again is the request with its body as if nobody had read of it.
func (o *order) again(r *http.Request) *http.Request {
	if o == nil {
		return r
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(o.body))
	return r
}

func inDoubt(err error) error {
	return fmt.Errorf("the controller that leads was gone before it answered, and it is not known whether it did this: look before you try again (%w)", err)
}
