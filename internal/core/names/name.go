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
func Clean(name, domain string) (string, error) { return clean("name", name, domain) }

// CleanService is Clean for a service's name, which the error says.
func CleanService(name, domain string) (string, error) { return clean("service name", name, domain) }

func clean(what, name, domain string) (string, error) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "" {
		return "", fmt.Errorf("no %s was given: want something like web or db.shop", what)
	}
	if full := len(name) + 1 + len(domain); full > MaxName {
		return "", fmt.Errorf("%s %s: %d characters with its domain .%s, DNS takes at most %d: choose a shorter one", what, short(name), full, domain, MaxName)
	}
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(what+" "+short(name), label); err != nil {
			return "", err
		}
	}
	return name, nil
}

// WithoutDomain is a name as people type it who see it with its domain behind it, in a browser or a log.
func WithoutDomain(name, domain string) string {
	if domain == "" {
		return name
	}
	short, _ := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(name, ".")), "."+strings.ToLower(strings.Trim(domain, ".")))
	return short
}

func checkLabel(name, label string) error {
	switch {
	case label == "":
		return fmt.Errorf("%s: an empty label between dots", name)
	case len(label) > MaxLabel:
		return fmt.Errorf("%s: a label of %d characters, DNS takes at most %d: choose a shorter one", name, len(label), MaxLabel)
	case label[0] == '-' || label[len(label)-1] == '-':
		return fmt.Errorf("%s: a label neither begins nor ends with a hyphen", name)
	}
	for _, c := range label {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", c) {
			return fmt.Errorf("%s: %q is not allowed: use letters, digits, hyphen, underscore, and dots between labels", name, c)
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
