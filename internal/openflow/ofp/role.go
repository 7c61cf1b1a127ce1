package ofp

import "fmt"

// A Role is what a controller may do at a switch that has several.
type Role uint32

// The roles. The specification calls primary and secondary master and slave.
const (
	RoleNoChange  Role = 0
	RoleEqual     Role = 1
	RolePrimary   Role = 2
	RoleSecondary Role = 3
)

var roleNames = [...]string{"no change", "equal", "primary", "secondary"}

func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return fmt.Sprintf("role %d", uint32(r))
}

// RoleRequest asks for a role, or by RoleNoChange which it is. A switch refuses a Generation that is
// older than one it has seen.
type RoleRequest struct{ RoleState }

// RoleReply answers a RoleRequest.
type RoleReply struct{ RoleState }

// RoleState is what both say.
type RoleState struct {
	Role       Role
	ShortID    uint16 // 1.5: a number for the controller
	Generation uint64
}

// Type implements Body.
func (RoleRequest) Type(Version) Type { return TypeRoleRequest }

// Type implements Body.
func (RoleReply) Type(Version) Type { return TypeRoleReply }

func (m *RoleState) layout(c *codec) {
	u32(c, &m.Role)
	if c.v >= V15 {
		u16(c, &m.ShortID)
		c.pad(2)
	} else {
		c.only(V15, m.ShortID != 0, "a controller's short number")
		c.pad(4)
	}
	u64(c, &m.Generation)
}

// RoleStatus says that the switch has changed the controller's role. In 1.3 it is an extension.
type RoleStatus struct {
	Role       Role
	Reason     RoleReason
	Generation uint64
}

// A RoleReason is why a role changed.
type RoleReason uint8

// Why roles change.
const (
	RoleTaken      RoleReason = 0 // another is primary now
	RoleConfigured RoleReason = 1
)

// Type implements Body.
func (RoleStatus) Type(v Version) Type {
	if v < V15 {
		return TypeExperimenter
	}
	return TypeRoleStatus
}

func (m *RoleStatus) layout(c *codec) {
	u32(c, &m.Role)
	u8(c, &m.Reason)
	c.pad(3)
	u64(c, &m.Generation)
	c.take(c.left()) // properties, of experimenters alone
}
