package registry

import (
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/core/serving"
	"scaffold.dev/scaffold/sid"
)

// servingStates are those of sockets that may serve.
func servingStates(proto sid.Proto) uint32 {
	if proto == sid.UDP {
		return sockets.StateAny
	}
	return sockets.StateListen
}

// hidden reports whether the edge cannot find a socket of the triple: the kernel looks for sockets as of a packet that came
// by the uplink. Where that is in a VRF, it is for sockets that are bound to the VRF's device, which not every kernel finds
// from there; and no socket of a guest that is bound to a device is bound to the uplink.
func (r *Registry) hidden(t sid.Triple) bool {
	if r.cfg.Place.VRF() != "" {
		return true
	}
	for _, guest := range r.sockets.Guests(t) {
		if guest != 0 && r.boundToDevice(t, guest) {
			return true
		}
	}
	return false
}

// boundToDevice looks whether one of the triple's sockets in a guest is.
func (r *Registry) boundToDevice(t sid.Triple, guest uint16) (bound bool) {
	own := map[uint64]bool{}
	r.sockets.Cookies(t, func(cookie uint64, o serving.Owner) { own[cookie] = o.Guest == guest })
	err := r.cfg.Namespaces.In(guest, t.Proto, servingStates(t.Proto), t.Port, func(s sockets.DiagSocket) {
		bound = bound || own[s.Cookie] && s.Device != 0
	})
	if err != nil {
		r.cfg.Log.Error("cannot see to which devices a server's sockets are bound", "triple", t, "guest", guest, "error", err)
	}
	return bound || err != nil
}
