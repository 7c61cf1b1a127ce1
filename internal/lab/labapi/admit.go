package labapi

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"
)

// NewToken makes a token that nobody guesses.
func NewToken() string { return rand.Text() }

// admit looks for the token. A page of another site cannot know it, whatever name it gives to this address.
func (s *Server) admit(r *http.Request) error {
	if s.cfg.Token == "" {
		return nil
	}
	shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	why := ""
	switch {
	case !ok:
		why = "a token is needed, as the header \"Authorization: Bearer TOKEN\"; scaffold lab serve printed it or wrote it to its --token-file"
	case subtle.ConstantTimeCompare([]byte(shown), []byte(s.cfg.Token)) != 1:
		why = "this is not the token of this server; scaffold lab serve printed it or wrote it to its --token-file"
	default:
		return nil
	}
	err := connect.NewError(connect.CodeUnauthenticated, errors.New(why))
	err.Meta().Set("WWW-Authenticate", "Bearer")
	return err
}
