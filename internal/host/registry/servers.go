package registry

import (
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"

	corenames "scaffold.dev/scaffold/internal/core/names"
)

// Servers say which users of this host may serve which services, by service; "*": all that have no list. Any user may
// bind a service's address, from port 1024 on: nothing else keeps him from taking a share of what others serve.
type Servers map[string][]string

// Words that stand for users.
const (
	anyUser = "any"
	// systemUsers are root and the accounts of services, as Debian and systemd number them: below 1000, and those that
	// systemd makes for a unit (DynamicUser=). People's accounts and nobody (65534) are not among them. It is the default:
	// what an administrator installed serves, and who merely may log in does not.
	systemUsers = "system"
)

const (
	firstOfPeople               = 1000
	firstDynamic, dynamicsAfter = 61184, 65520
)

// ParseServers reads entries SERVICE=USER,... with users by name or number, @GROUP, any or system.
func ParseServers(entries []string) (Servers, error) {
	list := Servers{"*": {systemUsers}}
	seen := map[string]bool{}
	for _, entry := range entries {
		service, users, ok := strings.Cut(strings.TrimSpace(entry), "=")
		if !ok || users == "" {
			return nil, fmt.Errorf("serve %q: want SERVICE=USER,@GROUP,... or *=..., with any for everybody, system for root and the accounts of services", entry)
		}
		if clean, err := corenames.Clean(service, ""); service != "*" && (err != nil || clean != service) {
			return nil, fmt.Errorf("serve %q: %.60q is no service's name", entry, service)
		}
		if seen[service] {
			return nil, fmt.Errorf("serve %q: %s has a list already: one entry for each service", entry, service)
		}
		seen[service] = true
		words := strings.Split(users, ",")
		for _, w := range words {
			if err := checkUser(w); err != nil {
				return nil, fmt.Errorf("serve %q: %w", entry, err)
			}
		}
		list[service] = words
	}
	return list, nil
}

// checkUser refuses who does not exist: a list that names nobody is a mistake that shows too late.
func checkUser(word string) error {
	if word == anyUser || word == systemUsers {
		return nil
	}
	if group, ok := strings.CutPrefix(word, "@"); ok {
		if _, err := user.LookupGroup(group); err != nil {
			return fmt.Errorf("no group %.60q on this host", group)
		}
		return nil
	}
	if _, err := strconv.ParseUint(word, 10, 32); err == nil {
		return nil
	}
	if _, err := user.Lookup(word); err != nil {
		return fmt.Errorf("no user %.60q on this host", word)
	}
	return nil
}

// may reports whether a user may serve.
func (s Servers) may(service string, uid uint32) bool {
	list, ok := s[service]
	if !ok {
		list = s["*"]
	}
	return slices.ContainsFunc(list, func(word string) bool { return matchesUser(word, uid) })
}

// mayAll reports whether a user may serve whichever service it is.
func (s Servers) mayAll(uid uint32) bool {
	for service := range s {
		if !s.may(service, uid) {
			return false
		}
	}
	return true
}

func matchesUser(word string, uid uint32) bool {
	group, isGroup := strings.CutPrefix(word, "@")
	switch {
	case word == anyUser:
		return true
	case word == systemUsers:
		return uid < firstOfPeople || uid >= firstDynamic && uid < dynamicsAfter
	case isGroup:
		return inGroup(uid, group)
	}
	return word == strconv.FormatUint(uint64(uid), 10) || word == userName(uid)
}

func inGroup(uid uint32, group string) bool {
	g, err := user.LookupGroup(group)
	if err != nil {
		return false
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return false
	}
	ids, err := u.GroupIds()
	return err == nil && slices.Contains(ids, g.Gid)
}

// userName is a user's name on this host, his number where he has none.
func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return number
}
