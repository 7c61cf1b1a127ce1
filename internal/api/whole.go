package api

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// mostWhole is what of an answer is read before any of it is passed on.
const mostWhole = 1 << 20

// Whole reads an answer to its end, before its first byte is passed on: who hands a question on can ask again where the
// controller dies in the middle of its answer, and cannot once the caller has the beginning. Streams, and answers of more
// than a mebibyte, are passed on as they come.
func Whole(resp *http.Response) error {
	kind := resp.Header.Get("Content-Type")
	if strings.HasPrefix(kind, "application/connect+") || strings.HasPrefix(kind, "application/grpc") {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostWhole+1))
	if err != nil {
		resp.Body.Close()
		return err
	}
	if rest := resp.Body; len(text) > mostWhole {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(text), rest), rest}
		return nil
	}
	err = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return err
}
