package members

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/orders"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
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

// Trust serves those who join, and who let them. Its methods run in the handlers' goroutines.
type Trust struct{ x *Members }

func (x *Members) needsKeys() error {
	if x.gate != nil {
		return nil
	}
	return conflict("this network is open: anybody may join it without a token: start the controller with --trust keys to have members")
}

// Meet is the first that somebody asks.
func (t *Trust) Meet(context.Context, *connect.Request[apiv1.MeetRequest]) (*connect.Response[apiv1.MeetResponse], error) {
	c := t.x.cfg
	return connect.NewResponse(&apiv1.MeetResponse{Network: c.Network, Trust: c.Trust, NowUnixMs: time.Now().UnixMilli(), Domain: c.Domain, Leader: c.Name, Retired: t.x.gate.Retired()}), nil
}

// CreateToken makes a token and says it, this once.
func (t *Trust) CreateToken(ctx context.Context, req *connect.Request[apiv1.CreateTokenRequest]) (*connect.Response[apiv1.CreateTokenResponse], error) {
	x, m := t.x, req.Msg
	if err := x.needsKeys(); err != nil {
		return nil, err
	}
	stored, err := tokenFrom(m, time.Now())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	addresses := m.Addresses
	if len(addresses) == 0 {
		if err := x.ask(ctx, func() { addresses = x.network.ReachedAt() }); err != nil {
			return nil, err
		}
	}
	token := trust.NewToken(trust.Role(stored.Role), x.gate.Pin(), addresses...)
	stored.Pin = token.Pin.String()
	stored.ID, stored.Hash = token.ID.String(), token.Secret.Hash()
	err = t.x.orders.Do(ctx, func() (orders.Change, error) {
		says := events.New("token.create", stored.ID, events.Because("a token was made for "+trust.Role(stored.Role).WithArticle(), stored.Name), "by", gate.PeerOf(ctx).String(), "expires", stamp(stored.Expires), "uses", events.Number(uint32(stored.Uses)))
		return orders.Change{Records: []store.Change{store.PutToken(stored)}, Effect: func() {
			x.pruneTokens()
			x.tokens[stored.ID] = stored
		}, Says: []*apiv1.Event{says}}, nil
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
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" || api.CheckPort(port) != nil || length > MostAddresses {
			return t, fmt.Errorf("address %.80q of a controller: want host:port, all of them in %d bytes", address, MostAddresses)
		}
	}
	return t, nil
}

// MostAddresses is what trust.ParseToken takes.
const MostAddresses = 512

// Redeem makes the caller's key a member's.
func (t *Trust) Redeem(ctx context.Context, req *connect.Request[apiv1.RedeemRequest]) (*connect.Response[apiv1.Credential], error) {
	x, m, p := t.x, req.Msg, gate.PeerOf(ctx)
	if err := x.needsKeys(); err != nil {
		return nil, err
	}
	var answer *apiv1.Credential
	var stored store.Token
	err := t.x.orders.Do(ctx, func() (c orders.Change, err error) {
		stored, err = x.redeemable(m, p.Key, time.Now())
		if err == nil {
			err = x.admissible(trust.Role(stored.Role), m.Name, p.Key)
		}
		if err != nil {
			x.refusedToken(stored, m, err)
			return c, err
		}
		answer, c, err = x.admitting(stored.Role, m.Name, p.Key)
		if err != nil || usedBy(stored, m.Name, p.Key) {
			return c, err // its answer was lost
		}
		stored.Used = append(slices.Clone(stored.Used), store.Member{Role: stored.Role, Name: m.Name, Key: p.Key, Since: time.Now().Unix()})
		enrolled := c.Effect
		c.Records = append(c.Records, store.PutToken(stored))
		c.Says[0].By = &apiv1.Actor{Role: "token", Name: stored.ID, Address: gate.ActorOf(ctx, x.cfg.Name).Address, Via: gate.ActorOf(ctx, x.cfg.Name).Via}
		c.Effect = func() { enrolled(); x.tokens[stored.ID] = stored }
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(answer), nil
}

// redeemable finds the token, or says why it is good for nothing. Who does not know the secret learns nothing.
func (x *Members) redeemable(m *apiv1.RedeemRequest, key []byte, now time.Time) (store.Token, error) {
	var secret trust.TokenSecret
	t, known := x.tokens[hex.EncodeToString(m.Id)]
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
		return t, refuseToken("the token was used already, by %s %s %v ago: make another one (`scaffold token create`)", last.Role, last.Name, gate.Since(last.Since))
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
func (x *Members) refusedToken(t store.Token, m *apiv1.RedeemRequest, why error) {
	x.refused.Inc()
	if x.refusals.Take(time.Now(), refusedBurst, refusedASecond) {
		x.events.Tell("token.refuse", cmp.Or(t.ID, "?"), events.Because("a token was refused", events.Said(why)), "name", events.Printable(events.Shortened(m.Name)))
	}
}

// How many refusals of tokens are told at once, and each second.
const (
	refusedBurst   = 20
	refusedASecond = 1
)

// admitting is the change by which a key becomes a member's, and its credential.
func (x *Members) admitting(role, name string, key []byte) (*apiv1.Credential, orders.Change, error) {
	answer, err := x.credential(trust.Identity{Role: trust.Role(role), Name: name, Key: key})
	if err != nil {
		return nil, orders.Change{}, err
	}
	m := store.Member{Role: role, Name: name, Key: key, Since: time.Now().Unix()}
	if have, ok := x.members[memberName{role, name}]; ok {
		m = have // the same key: admissible says so
	}
	m.By, m.Issued = x.gate.Pin().String(), time.Now().Unix()
	says := events.New(role+".enrol", name, trust.Role(role).WithArticle()+" got a credential", "key", apiMember(m).Key)
	return answer, orders.Change{Records: []store.Change{store.PutMember(m)}, Effect: func() { x.enrol(m) }, Says: []*apiv1.Event{says}}, nil
}

// Issue does without a token what Redeem does.
func (t *Trust) Issue(ctx context.Context, req *connect.Request[apiv1.IssueRequest]) (*connect.Response[apiv1.Credential], error) {
	x, m := t.x, req.Msg
	if err := x.needsKeys(); err != nil {
		return nil, err
	}
	role, err := trust.ParseRole(m.Role)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	var answer *apiv1.Credential
	err = t.x.orders.Do(ctx, func() (c orders.Change, err error) {
		if err = x.admissible(role, m.Name, m.Key); err == nil {
			answer, c, err = x.admitting(m.Role, m.Name, m.Key)
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(answer), nil
}

// Renew gives a member a fresh credential.
func (t *Trust) Renew(ctx context.Context, _ *connect.Request[apiv1.RenewRequest]) (*connect.Response[apiv1.Credential], error) {
	p := gate.PeerOf(ctx)
	if p.Leaf == nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("who asks on the controller's own socket has no credential"))
	}
	return get(ctx, t.x, func() (*apiv1.Credential, error) { return t.x.credential(p.Identity) })
}

// ListTokens lists tokens, those that are of no use any more too, the newest first.
func (t *Trust) ListTokens(ctx context.Context, _ *connect.Request[apiv1.ListTokensRequest]) (*connect.Response[apiv1.ListTokensResponse], error) {
	return get(ctx, t.x, func() (*apiv1.ListTokensResponse, error) {
		list := new(apiv1.ListTokensResponse)
		sorted := slices.SortedFunc(maps.Values(t.x.tokens), func(a, b store.Token) int {
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
func (t *Trust) RevokeToken(ctx context.Context, req *connect.Request[apiv1.RevokeTokenRequest]) (*connect.Response[apiv1.RevokeTokenResponse], error) {
	id := req.Msg.Id
	err := t.x.orders.Do(ctx, func() (orders.Change, error) {
		if _, known := t.x.tokens[id]; !known {
			return orders.Change{}, connect.NewError(connect.CodeNotFound, fmt.Errorf("no token %.80q: `scaffold token ls` lists them", id))
		}
		return orders.Change{Records: []store.Change{store.DeleteToken(id)}, Effect: func() { delete(t.x.tokens, id) },
			Says: []*apiv1.Event{events.New("token.revoke", id, "a token was revoked", "by", gate.PeerOf(ctx).String())}}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&apiv1.RevokeTokenResponse{}), nil
}

// pruneTokens forgets those that ended long ago.
func (x *Members) pruneTokens() {
	for id, t := range x.tokens {
		if time.Now().Unix() > t.Expires+int64(rememberToken.Seconds()) {
			delete(x.tokens, id)
			x.saver.Later(store.DeleteToken(id))
		}
	}
}
