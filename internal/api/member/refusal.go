package member

import (
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

// Why there is no session.
var (
	ErrStandby  = errors.New("the controller does not lead")
	ErrRefused  = errors.New("the controller refused it")         // for now
	ErrFinal    = errors.New("the controller does not let it in") // until somebody does something about it
	ErrDeposed  = errors.New("the controller leads no more: there is a newer one")
	ErrOther    = errors.New("the controller is of another network than the one before: --controller names those of two")
	ErrProtocol = errors.New("the controller's first order is not Joined: another version?")
	ErrClosed   = errors.New("the controller closed the stream")
)

// A Refusal is a controller's word that it does not let a member in; it is an ErrStandby, an ErrRefused or an ErrFinal.
type Refusal struct {
	Said *apiv1.Refused // nil where the call itself was refused
	kind error
	who  string // "this host"
	why  error
}

func refusal(who string, said *apiv1.Refused) *Refusal {
	r := &Refusal{Said: said, kind: ErrFinal, who: who, why: errors.New(said.Reason)}
	switch {
	case said.Standby:
		r.kind = ErrStandby
	case said.Retry:
		r.kind = ErrRefused
	}
	return r
}

// final is why nothing changes by itself.
func final(who string, why error) *Refusal { return &Refusal{kind: ErrFinal, who: who, why: why} }

func (r *Refusal) Error() string {
	switch {
	case r.Is(ErrStandby):
		return fmt.Sprintf("%v: %v", r.kind, r.why)
	case r.Is(ErrRefused):
		return fmt.Sprintf("the controller refused %s: %v", r.who, r.why)
	}
	return fmt.Sprintf("the controller does not let %s in: %v", r.who, r.why)
}

// Is makes it one of the above.
func (r *Refusal) Is(target error) bool { return r.kind == target }

// Unwrap is the error of the call.
func (r *Refusal) Unwrap() error { return r.why }

// Outside reports whether a controller was reached and this is no member of its network, rather than that none was.
func Outside(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrFinal) || errors.Is(err, ErrOther) || foreign(err)
}

// foreign reports whether the controller's certificate is of another network, as far as the member knows its own.
func foreign(err error) bool { // a transport may pass on the words alone
	return err != nil && strings.Contains(err.Error(), trust.ErrOtherNetwork.Error())
}

// denied reports whether the controller says that this is no member, or not the one that it says.
func denied(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeUnauthenticated || code == connect.CodePermissionDenied
}
