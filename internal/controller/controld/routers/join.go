package routers

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/controller/controld/events"
	"scaffold.dev/scaffold/internal/controller/controld/gate"
	"scaffold.dev/scaffold/internal/controller/controld/locators"
	"scaffold.dev/scaffold/internal/controller/controld/session"
	"scaffold.dev/scaffold/internal/controller/store"
	"scaffold.dev/scaffold/internal/core/names"
	"scaffold.dev/scaffold/internal/router/agent"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/wire"
)

// maxText bounds identifiers and versions, in bytes.
const maxText = 256

// Join admits a router or says why not.
func (x *Routers) Join(s *Session, j *apiv1.RouterJoin) *apiv1.Refused {
	name, err := names.Clean(j.Name, "")
	if err != nil || name != j.Name {
		return &apiv1.Refused{Reason: fmt.Sprintf("router name %.80q: want letters, digits and hyphens, in lower case", j.Name)}
	}
	if max(len(j.BootId), len(j.Version)) > maxText {
		return &apiv1.Refused{Reason: fmt.Sprintf("boot id or version of more than %d bytes", maxText)}
	}
	protocol, err := versions.Agent().Agree("this controller", "router "+name, versions.Told(j.Speaks.GetFrom(), j.Speaks.GetTo()))
	if err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	peer := gate.PeerOf(s.Context())
	if err := gate.Itself(peer, trust.Router, name, nil); err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	if m, _ := x.Members.Member(trust.Router, name); peer.Leaf != nil && !bytes.Equal(m.Key, peer.Key) && !bytes.Equal(m.Next, peer.Key) {
		return &apiv1.Refused{Reason: fmt.Sprintf("router %s has the key %08x, and this one shows %08x: is it started from a copy of before?", name, wire.KeyID(m.Key), wire.KeyID(peer.Key))}
	}
	r, known := x.all[name]
	if known && r.Here && r.bootID != j.BootId {
		return &apiv1.Refused{Retry: true, Reason: fmt.Sprintf("a router named %s is connected already: give this one another name", name)}
	}
	block, refused := x.blockFor(name, j.Block, j.Had)
	if refused != nil {
		return refused
	}
	if err := checkLinkKey(j.LinkKey); err != nil {
		return &apiv1.Refused{Reason: err.Error()}
	}
	want := store.Router{Name: name, Block: block, Service: j.Service, LinkKey: hex.EncodeToString(j.LinkKey), Switch: strings.HasPrefix(j.BootId, agent.SwitchBoot)}
	if known && r.Here {
		r.session.End(session.ErrReplaced)
	}
	x.admit(s, want, j, protocol)
	return nil
}

func (x *Routers) admit(s *Session, want store.Router, j *apiv1.RouterJoin, protocol uint32) {
	r, known := x.all[want.Name]
	rekeyed := !known || r.LinkKey != want.LinkKey
	switch {
	case !known:
		r = x.know(want)
		x.Saver.Later(store.PutRouter(want))
	case r.Router.Router != want:
		delete(x.blocks, r.Block)
		r.Router.Router = want
		x.blocks[want.Block] = want.Name
		x.Plan.SetRouter(x.planned(want))
		x.Pushes.Know(want.Name, want.Service)
		x.Saver.Later(store.PutRouter(want))
	}
	r.session, r.Here, r.Reported, r.bootID = s, true, false, j.BootId
	x.Pushes.Joined(r.Name, s)
	x.Links.Joined(r.Name)
	r.Version, r.Protocol = j.Version, protocol
	peer := gate.PeerOf(s.Context())
	x.Members.Succeeded(trust.Router, r.Name, peer.Key)
	x.Places.Joined(r.Name)
	x.Events.Tell("router.join", r.Name, "router joined", "block", events.Number(r.Block), "holds", events.Number(j.Generation), "version", j.Version)
	x.Members.RenewLater(s.Context(), peer, func(c *apiv1.Credential) {
		s.Send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Credential{Credential: c}})
	})
	joined := x.Accept()
	joined.Locator, joined.Protocol = x.locator(r.Block).String(), r.Protocol
	joined.Credential, joined.Routers = x.Members.Fresh(peer), x.keys()
	s.Send(&apiv1.RouterOrder{Order: &apiv1.RouterOrder_Joined{Joined: joined}})
	if rekeyed {
		x.tellKey(&apiv1.RouterKey{Name: r.Name, LinkKey: j.LinkKey}, r)
	}
	x.Tunnels.Joined(r.Name, j)
}

// blockFor is the block that the router asks for, had, or the lowest free one.
func (x *Routers) blockFor(name string, asked, had uint32) (uint8, *apiv1.Refused) {
	if _, known := x.all[name]; !known && asked == 0 && had <= 255 {
		if owner, taken := x.blocks[uint8(had)]; !taken || owner == name {
			asked = had // of which the stored state does not know
		}
	}
	if asked > 255 {
		return 0, &apiv1.Refused{Reason: fmt.Sprintf("block %d: want 1 to 255, or 0 for any", asked)}
	}
	if owner, taken := x.blocks[uint8(asked)]; taken && owner != name {
		return 0, &apiv1.Refused{Reason: fmt.Sprintf("block %d belongs to router %s: ask for another one", asked, owner)}
	}
	if asked != 0 {
		return uint8(asked), nil
	}
	if r, ok := x.all[name]; ok {
		return r.Block, nil
	}
	if x.Waits() {
		return 0, &apiv1.Refused{Retry: true, Reason: locators.ErrWaiting.Error()}
	}
	for b := 1; b <= 255; b++ {
		if _, taken := x.blocks[uint8(b)]; !taken {
			return uint8(b), nil
		}
	}
	err := errors.New("all 255 blocks of the network are taken, each by a router that ever joined: no further router can join")
	x.Full(x.Network, err)
	return 0, &apiv1.Refused{Reason: err.Error()}
}
