package registry

import (
	"fmt"
	"strconv"

	"net"

	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/sid"
)

// deviceName is an interface's name, its number where it is gone.
func deviceName(index int) string {
	if l, err := net.InterfaceByIndex(index); err == nil {
		return l.Name
	}
	return strconv.Itoa(index)
}

// carries reports whether it is an agent of boost that serves: its sockets have its mark, which takes CAP_NET_ADMIN to set.
func (r *Registry) carries(t sid.Triple) (is bool) {
	if t.Proto != sid.TCP {
		return false
	}
	own := map[uint64]bool{}
	r.sockets.Cookies(t, func(cookie uint64, _ serving.Owner) { own[cookie] = true })
	err := r.cfg.Namespaces.Each(t.Proto, servingStates(t.Proto), t.Port, func(s sockets.DiagSocket) {
		is = is || own[s.Cookie] && s.Mark == sockets.Named
	})
	if err != nil {
		r.cfg.Log.Error("cannot see whether it is an agent of boost that serves", "triple", t, "error", err)
	}
	return is
}

// unfit looks up whose the sockets of an instance are, and where they listen, and says why they may not serve, or "".
// Guests are made by root, who says what they serve. barred: it is the user who may not.
func (r *Registry) unfit(t sid.Triple, i *instance) (why string, barred bool) {
	own := map[uint64]bool{}
	r.sockets.Cookies(t, func(cookie uint64, o serving.Owner) {
		if o.Guest == 0 {
			own[cookie] = true
		}
	})
	err := r.cfg.Namespaces.In(0, t.Proto, servingStates(t.Proto), t.Port, func(s sockets.DiagSocket) {
		if !own[s.Cookie] {
			return
		}
		i.user = userName(s.UID)
		if s.Device != 0 && !r.cfg.Place.LeadsHere(int(s.Device)) {
			why = fmt.Sprintf("its socket is bound to the device %s, by which nothing for a service comes: bind it to none (SO_BINDTODEVICE)", deviceName(int(s.Device)))
		}
		if s.Device == 0 && !r.cfg.Place.GivesToUnbound(t.Proto) {
			why = fmt.Sprintf("its socket is bound to no device, and what comes by the uplinks is for those that are bound to their VRF: start it by ip vrf exec %s", r.cfg.Place.VRF())
		}
		if !r.known(t) && !r.cfg.Servers.mayAll(s.UID) {
			barred = true
			why = fmt.Sprintf("user %s may not serve every service of this host, and only a controller can say which this is", i.user)
		} else if r.known(t) && !r.cfg.Servers.may(r.Name(t.Service), s.UID) {
			barred = true
			why = fmt.Sprintf("user %s may not serve %s on this host: add serve: [%q] to the host's hostd.yaml, and restart hostd", i.user, r.Name(t.Service), r.Name(t.Service)+"="+i.user)
		}
	})
	if err != nil {
		r.cfg.Log.Error("cannot see whose a server's sockets are", "triple", t, "error", err)
	}
	return why, barred
}
