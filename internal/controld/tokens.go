package controld

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/store"
	"scaffold.dev/scaffold/internal/trust"
)

// How long tokens are good for where nobody says, at most, and how long they are remembered afterwards, so that
// who comes late is told so.
const (
	tokenFor      = time.Hour
	mostTokenFor  = 30 * 24 * time.Hour
	mostTokenUses = 10000
	rememberToken = 7 * 24 * time.Hour
)

// trustAPI serves those who join, and who let them.
type trustAPI struct {
	n     *network
	admin *adminAPI
}

func (n *network) needsKeys() error {
	if n.gate != nil {
		return nil
	}
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("%w: this network is open: anybody may join it without a token: start the controller with --trust keys to have members", errConflict))
}

// Meet is the first that somebody asks.
func (t *trustAPI) Meet(context.Context, *connect.Request[apiv1.MeetRequest]) (*connect.Response[apiv1.MeetResponse], error) {
	c := t.n.cfg
	return connect.NewResponse(&apiv1.MeetResponse{Network: c.Network, Trust: c.Trust, NowUnixMs: time.Now().UnixMilli(), Domain: c.Domain, Leader: c.Name, Retired: t.n.gate.retiredKeys()}), nil
}

// CreateToken makes a token and says it, this once.
func (t *trustAPI) CreateToken(ctx context.Context, req *connect.Request[apiv1.CreateTokenRequest]) (*connect.Response[apiv1.CreateTokenResponse], error) {
	n, m := t.n, req.Msg
	if err := n.needsKeys(); err != nil {
		return nil, err
	}
	stored, err := tokenFrom(m, time.Now())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	token := trust.NewToken(trust.Role(stored.Role), n.gate.pin(), m.Addresses...)
	stored.Pin = token.Pin.String()
	stored.ID, stored.Hash = token.ID.String(), token.Secret.Hash()
	err = t.admin.do(ctx, func() (change, error) {
		return change{[]store.Change{store.PutToken(stored)}, func() {
			n.pruneTokens()
			n.tokens[stored.ID] = stored
			n.event("token.create", stored.ID, "a token was made for a "+because(stored.Role, stored.Name), "by", peerOf(ctx).String(), "expires", stamp(stored.Expires))
		}}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&apiv1.CreateTokenResponse{Token: token.String(), Stored: apiToken(stored)}), nil
}

func stamp(unix int64) string { return trust.Stamp(time.Unix(unix, 0)) }

// tokenFrom reads what is asked for.
func tokenFrom(m *apiv1.CreateTokenRequest, now time.Time) (store.Token, error) {
	role, err := trust.ParseRole(m.Role)
	if err != nil {
		return store.Token{}, err
	}
	t := store.Token{Role: string(role), Name: m.Name, Created: now.Unix(), Uses: int(max(1, m.Uses))}
	valid := cmp.Or(time.Duration(m.ValidMs)*time.Millisecond, tokenFor)
	t.Expires = now.Add(valid).Unix()
	switch clean, err := names.Clean(m.Name, ""); {
	case m.Name != "" && (err != nil || clean != m.Name):
		return t, fmt.Errorf("name %.80q: want letters, digits and hyphens, in lower case", m.Name)
	case valid < time.Second || m.ValidMs > mostTokenFor.Milliseconds():
		return t, fmt.Errorf("a token is good for 1s to %v, not for %v", mostTokenFor, valid)
	case t.Uses > mostTokenUses:
		return t, fmt.Errorf("a token is good for at most %d uses, not for %d", mostTokenUses, t.Uses)
	case t.Uses > 1 && t.Name != "":
		return t, fmt.Errorf("a token for %s alone cannot be used %d times", t.Name, t.Uses)
	}
	length := 0
	for _, address := range m.Addresses {
		length += 1 + len(address)
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" || api.CheckPort(port) != nil || length > mostTokenAddresses {
			return t, fmt.Errorf("address %.80q of a controller: want host:port, all of them in %d bytes", address, mostTokenAddresses)
		}
	}
	return t, nil
}

// mostTokenAddresses is what trust.ParseToken takes.
const mostTokenAddresses = 512

// Redeem makes the caller's key a member's.
func (t *trustAPI) Redeem(ctx context.Context, req *connect.Request[apiv1.RedeemRequest]) (*connect.Response[apiv1.Credential], error) {
	n, m, p := t.n, req.Msg, peerOf(ctx)
	if err := n.needsKeys(); err != nil {
		return nil, err
	}
	var answer *apiv1.Credential
	var stored store.Token
	err := t.admin.do(ctx, func() (c change, err error) {
		stored, err = n.redeemable(m, p.Key, time.Now())
		if err == nil {
			err = n.admissible(trust.Role(stored.Role), m.Name, p.Key)
		}
		if err != nil {
			n.refusedToken(stored, m, err)
			return c, err
		}
		answer, c, err = n.admitting(stored.Role, m.Name, p.Key)
		if err != nil || usedBy(stored, m.Name, p.Key) {
			return c, err // its answer was lost
		}
		stored.Used = append(slices.Clone(stored.Used), store.Member{Role: stored.Role, Name: m.Name, Key: p.Key, Since: time.Now().Unix()})
		enrolled := c.effect
		c.records = append(c.records, store.PutToken(stored))
		c.effect = func() { enrolled(); n.tokens[stored.ID] = stored }
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(answer), nil
}

// redeemable finds the token, or says why it is good for nothing. Who does not know the secret learns nothing.
func (n *network) redeemable(m *apiv1.RedeemRequest, key []byte, now time.Time) (store.Token, error) {
	var secret trust.TokenSecret
	t, known := n.tokens[hex.EncodeToString(m.Id)]
	if len(m.Secret) != len(secret) || copy(secret[:], m.Secret) < len(secret) || !known || !secret.Fits(t.Hash) {
		return store.Token{}, refuseToken("the network knows no such token: it was revoked, or never made here (its clock says %s)", stamp(now.Unix()))
	}
	switch {
	case now.Unix() >= t.Expires:
		return t, refuseToken("the token expired %v ago, at %s by the controller's clock: make another one (`scaffold token create`)", now.Sub(time.Unix(t.Expires, 0)).Round(time.Second), stamp(t.Expires))
	case t.Name != "" && t.Name != m.Name:
		return t, refuseToken("the token is for %s %s alone, and this is %.80q: use --name %s, or make another token", t.Role, t.Name, m.Name, t.Name)
	case len(t.Used) >= t.Uses && !usedBy(t, m.Name, key):
		last := t.Used[len(t.Used)-1]
		return t, refuseToken("the token was used already, by %s %s %v ago: make another one (`scaffold token create`)", last.Role, last.Name, since(last.Since))
	}
	return t, nil
}

// usedBy reports whether the token has made this member already. The same key under another name is another use.
func usedBy(t store.Token, name string, key []byte) bool {
	return slices.ContainsFunc(t.Used, func(u store.Member) bool { return u.Name == name && bytes.Equal(u.Key, key) })
}

func refuseToken(format string, args ...any) error {
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf(format, args...))
}

// refusedToken counts, and tells of those who had a true token or hit on the id of one, in measure.
func (n *network) refusedToken(t store.Token, m *apiv1.RedeemRequest, why error) {
	n.metrics.refusedTokens.Inc()
	if n.strangers.take(time.Now(), strangerBurst, strangersASecond) {
		n.event("token.refuse", cmp.Or(t.ID, "?"), because("a token was refused", said(why)), "name", printable(shortened(m.Name)))
	}
}

// said is what an error of the API says, without its code.
func said(err error) string {
	var known *connect.Error
	if errors.As(err, &known) {
		return known.Message()
	}
	return err.Error()
}

// How many refusals of tokens are told at once, and each second.
const (
	strangerBurst    = 20
	strangersASecond = 1
)

// admitting is the change by which a key becomes a member's, and its credential.
func (n *network) admitting(role, name string, key []byte) (*apiv1.Credential, change, error) {
	answer, err := n.credential(trust.Identity{Role: trust.Role(role), Name: name, Key: key})
	if err != nil {
		return nil, change{}, err
	}
	m := store.Member{Role: role, Name: name, Key: key, Since: time.Now().Unix()}
	if have, ok := n.members[memberName{role, name}]; ok {
		m = have // the same key: admissible says so
	}
	m.By = n.gate.pin().String()
	return answer, change{[]store.Change{store.PutMember(m)}, func() {
		n.enrol(m)
		n.event(role+".enrol", name, "a "+role+" got a credential", "key", apiMember(m).Key)
	}}, nil
}

// Issue does without a token what Redeem does.
func (t *trustAPI) Issue(ctx context.Context, req *connect.Request[apiv1.IssueRequest]) (*connect.Response[apiv1.Credential], error) {
	n, m := t.n, req.Msg
	if err := n.needsKeys(); err != nil {
		return nil, err
	}
	role, err := trust.ParseRole(m.Role)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	var answer *apiv1.Credential
	err = t.admin.do(ctx, func() (c change, err error) {
		if err = n.admissible(role, m.Name, m.Key); err == nil {
			answer, c, err = n.admitting(m.Role, m.Name, m.Key)
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(answer), nil
}

// Renew gives a member a fresh credential.
func (t *trustAPI) Renew(ctx context.Context, _ *connect.Request[apiv1.RenewRequest]) (*connect.Response[apiv1.Credential], error) {
	p := peerOf(ctx)
	if p.leaf == nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("who asks on the controller's own socket has no credential"))
	}
	return get(ctx, t.n, func() (*apiv1.Credential, error) { return t.n.credential(p.Identity) })
}

// ListTokens lists tokens, those that are of no use any more too, the newest first.
func (t *trustAPI) ListTokens(ctx context.Context, _ *connect.Request[apiv1.ListTokensRequest]) (*connect.Response[apiv1.ListTokensResponse], error) {
	return get(ctx, t.n, func() (*apiv1.ListTokensResponse, error) {
		list := new(apiv1.ListTokensResponse)
		sorted := slices.SortedFunc(maps.Values(t.n.tokens), func(a, b store.Token) int {
			return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.ID, b.ID))
		})
		for _, token := range sorted {
			list.Tokens = append(list.Tokens, apiToken(token))
		}
		return list, nil
	})
}

func apiToken(t store.Token) *apiv1.Token {
	m := &apiv1.Token{Id: t.ID, Role: t.Role, Name: t.Name, CreatedUnix: t.Created, ExpiresUnix: t.Expires, Uses: uint32(t.Uses), State: "open"}
	for _, u := range t.Used {
		m.Used = append(m.Used, apiMember(u))
	}
	switch {
	case len(t.Used) >= t.Uses:
		m.State = "used"
	case time.Now().Unix() >= t.Expires:
		m.State = "expired"
	}
	return m
}

// RevokeToken makes a token good for nothing. Who has used it stays a member.
func (t *trustAPI) RevokeToken(ctx context.Context, req *connect.Request[apiv1.RevokeTokenRequest]) (*connect.Response[apiv1.RevokeTokenResponse], error) {
	id := req.Msg.Id
	err := t.admin.do(ctx, func() (change, error) {
		if _, known := t.n.tokens[id]; !known {
			return change{}, connect.NewError(connect.CodeNotFound, fmt.Errorf("no token %.80q: `scaffold token ls` lists them", id))
		}
		return change{[]store.Change{store.DeleteToken(id)}, func() {
			delete(t.n.tokens, id)
			t.n.event("token.revoke", id, "a token was revoked", "by", peerOf(ctx).String())
		}}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&apiv1.RevokeTokenResponse{}), nil
}

// pruneTokens forgets those that ended long ago.
func (n *network) pruneTokens() {
	for id, t := range n.tokens {
		if time.Now().Unix() > t.Expires+int64(rememberToken.Seconds()) {
			delete(n.tokens, id)
			n.saver.later(store.DeleteToken(id))
		}
	}
}
