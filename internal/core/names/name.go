package names

import (
	"fmt"
	"strings"
)

// MaxLabel and MaxName are DNS's limits (RFC 1035 §2.3.4), because names are asked for by DNS.
const (
	MaxLabel = 63
	MaxName  = 253
)

// Clean returns the name in the form in which it is stored: lower case, without a final dot. An
// error says what is wrong with it and what would be right.
func Clean(name, domain string) (string, error) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "" {
		return "", fmt.Errorf("the service has no name: want something like web or db.shop")
	}
	if full := len(name) + 1 + len(domain); full > MaxName {
		return "", fmt.Errorf("service name %s: %d characters with its domain .%s, DNS takes at most %d: choose a shorter one", short(name), full, domain, MaxName)
	}
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(name, label); err != nil {
			return "", err
		}
	}
	return name, nil
}

func checkLabel(name, label string) error {
	switch {
	case label == "":
		return fmt.Errorf("service name %s: an empty label between dots", short(name))
	case len(label) > MaxLabel:
		return fmt.Errorf("service name %s: a label of %d characters, DNS takes at most %d: choose a shorter one", short(name), len(label), MaxLabel)
	case label[0] == '-' || label[len(label)-1] == '-':
		return fmt.Errorf("service name %s: a label neither begins nor ends with a hyphen", short(name))
	}
	for _, c := range label {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", c) {
			return fmt.Errorf("service name %s: %q is not allowed: use letters, digits, hyphen, underscore, and dots between labels", short(name), c)
		}
	}
	return nil
}

// short keeps error messages on one line, and what people typed from ending up on their terminal raw.
func short(name string) string {
	const most = 40
	if len(name) > most {
		return fmt.Sprintf("%q...", name[:most])
	}
	return fmt.Sprintf("%q", name)
}
