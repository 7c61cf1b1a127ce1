package gate

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/trust"
)

// mayBeCalled says of each procedure of the controller who may call it: s somebody without a credential who speaks TLS, h a host, r a router, b an agent of boost,
// a an administrator, c another controller, l a user on the controller's own socket. A host's calls of those with an h
// that steer are about itself alone (TestRolesAreHeld).
var mayBeCalled = map[string]string{
	"Admin/AddController": "acl", "Admin/Apply": "acl", "Admin/BackupState": "acl", "Admin/CreateService": "acl",
	"Admin/Drain": "hacl", "Admin/DrainHost": "hacl", "Admin/Explain": "hrbacl", "Admin/Export": "hrbacl",
	"Admin/GetHealth": "hrbacl", "Admin/GetHost": "hrbacl", "Admin/GetPath": "hrbacl", "Admin/GetService": "hrbacl", "Admin/GetStatus": "hrbacl",
	"Admin/ListControllers": "hrbacl", "Admin/ListHosts": "hrbacl", "Admin/ListRouters": "hrbacl", "Admin/ListServices": "hrbacl",
	"Admin/RemoveController": "acl", "Admin/RemoveService": "acl", "Admin/SetWeight": "hacl", "Admin/SetWeights": "acl",
	"Admin/UpdateAccess": "acl", "Admin/UpdatePolicy": "acl", "Admin/WatchEvents": "hrbacl",
	"Agent/Host": "hacl", "Agent/KeepFlow": "acl", "Agent/KeptFlows": "acl", "Agent/Note": "acl", "Agent/Others": "hracl",
	"Agent/Resolve": "hracl", "Agent/Router": "racl", "Agent/Tunnel": "hacl",
	"Boost/AllowBoost": "acl", "Boost/DenyBoost": "acl", "Boost/DrainBoostAgent": "acl", "Boost/ListBoost": "hrbacl", "Boost/ListBoostSessions": "hrbacl",
	"Boost/RemoveBoostSite": "acl", "Boost/SetBoostSite": "acl",
	"BoostSteering/Steer":    "l",
	"BoostStream/Agent":      "bacl",
	"Switches/AddSwitchFlow": "acl", "Switches/GetSwitch": "hrbacl", "Switches/ListSwitchFlows": "hrbacl",
	"Switches/ListSwitches": "hrbacl", "Switches/RemoveSwitchFlow": "acl",
	"Trust/CreateToken": "acl", "Trust/Forget": "hrbacl", "Trust/GetAuthority": "acl", "Trust/Issue": "acl",
	"Trust/ListMembers": "hrbacl", "Trust/ListTokens": "acl", "Trust/Meet": "shrbacl", "Trust/Redeem": "shrbacl",
	"Trust/Renew": "hrbacl", "Trust/RetireAuthority": "acl", "Trust/RevokeToken": "acl", "Trust/Rotate": "hrbacl", "Trust/RotateAuthority": "acl",
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
		{"h", as(trust.Host)}, {"r", as(trust.Router)}, {"b", as(trust.Agent)}, {"a", as(trust.Admin)}, {"c", as(trust.Controller)}, {"l", Peer{Local: true}},
	}
	seen := map[string]bool{}
	for _, service := range []string{"Admin", "Agent", "Boost", "BoostSteering", "BoostStream", "Switches", "Trust"} {
		file := apiv1.File_scaffold_proto
		if strings.HasPrefix(service, "Boost") {
			file = apiv1.File_boost_proto
		}
		methods := file.Services().ByName(protoreflect.Name(service)).Methods()
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
