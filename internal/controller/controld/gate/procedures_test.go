package gate

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

// mayBeCalled says of each procedure of the controller who may call it: s somebody without a credential who speaks TLS, h a host, r a router,
// a an administrator, c another controller, l a user on the controller's own socket. A host's calls of those with an h
// that steer are about itself alone (TestRolesAreHeld).
var mayBeCalled = map[string]string{
	"Admin/AddController": "acl", "Admin/Apply": "acl", "Admin/BackupState": "acl", "Admin/CreateService": "acl",
	"Admin/Drain": "hacl", "Admin/DrainHost": "hacl", "Admin/Explain": "hracl", "Admin/Export": "hracl",
	"Admin/GetHealth": "hracl", "Admin/GetHost": "hracl", "Admin/GetPath": "hracl", "Admin/GetService": "hracl", "Admin/GetStatus": "hracl",
	"Admin/ListControllers": "hracl", "Admin/ListHosts": "hracl", "Admin/ListRouters": "hracl", "Admin/ListServices": "hracl",
	"Admin/RemoveController": "acl", "Admin/RemoveService": "acl", "Admin/SetWeight": "hacl", "Admin/SetWeights": "acl",
	"Admin/UpdateAccess": "acl", "Admin/UpdatePolicy": "acl", "Admin/WatchEvents": "hracl",
	"Agent/Host": "hacl", "Agent/KeepFlow": "acl", "Agent/KeptFlows": "acl", "Agent/Note": "acl", "Agent/Others": "hracl",
	"Agent/Resolve": "hracl", "Agent/Router": "racl", "Agent/Tunnel": "hacl",
	"Switches/AddSwitchFlow": "acl", "Switches/GetSwitch": "hracl", "Switches/ListSwitchFlows": "hracl",
	"Switches/ListSwitches": "hracl", "Switches/RemoveSwitchFlow": "acl",
	"Trust/CreateToken": "acl", "Trust/Forget": "hracl", "Trust/GetAuthority": "acl", "Trust/Issue": "acl",
	"Trust/ListMembers": "hracl", "Trust/ListTokens": "acl", "Trust/Meet": "shracl", "Trust/Redeem": "shracl",
	"Trust/Renew": "hracl", "Trust/RetireAuthority": "acl", "Trust/RevokeToken": "acl", "Trust/Rotate": "hracl", "Trust/RotateAuthority": "acl",
}

// TestEachProcedureSaysWhoMayCallIt: one that is new fails here until somebody has decided.
func TestEachProcedureSaysWhoMayCallIt(t *testing.T) {
	t.Parallel()
	key := ed25519.PublicKey(make([]byte, ed25519.PublicKeySize))
	as := func(role trust.Role) Peer { return Peer{Identity: trust.Identity{Role: role, Name: "x", Key: key}} }
	callers := []struct {
		letter string
		peer   Peer
	}{
		{"s", Peer{Identity: trust.Identity{Key: key}, Unauthenticated: errNoMember}},
		{"h", as(trust.Host)}, {"r", as(trust.Router)}, {"a", as(trust.Admin)}, {"c", as(trust.Controller)}, {"l", Peer{Local: true}},
	}
	seen := map[string]bool{}
	for _, service := range []string{"Admin", "Agent", "Switches", "Trust"} {
		methods := apiv1.File_scaffold_proto.Services().ByName(protoreflect.Name(service)).Methods()
		for i := range methods.Len() {
			name := service + "/" + string(methods.Get(i).Name())
			want, decided := mayBeCalled[name]
			seen[name] = true
			if !decided {
				t.Errorf("nobody has decided who may call %s: add it to mayBeCalled, and to circles if its name does not say it", name)
				continue
			}
			got := ""
			for _, c := range callers {
				if mayCall(c.peer, "/scaffold.v1."+name) == nil {
					got += c.letter
				}
			}
			if got != want {
				t.Errorf("%s may be called by %q, want %q", name, got, want)
			}
		}
	}
	for name := range mayBeCalled {
		if !seen[name] {
			t.Errorf("there is no %s any more", name)
		}
	}
	bare := Peer{Unauthenticated: errInTheClear} // no TLS
	if err := mayCall(bare, "/scaffold.v1.Trust/Redeem"); connect.CodeOf(err) != connect.CodeUnauthenticated || !errors.Is(err, errInTheClear) {
		t.Errorf("who does not speak TLS: %v", fmt.Sprint(err))
	}
}
