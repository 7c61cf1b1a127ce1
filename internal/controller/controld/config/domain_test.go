package config

import (
	"strings"
	"testing"
)

func TestADomainOfTheWorldIsNotTaken(t *testing.T) {
	t.Parallel()
	for domain, want := range map[string]string{
		"svc": "", "internal": "", "home.arpa": "", "lab.home.arpa": "", "test": "", "svc.example.org": "", "example.org": "", "SVC.": "",
		"com": "registries", "co.uk": "registries", "org.": "registries", "github.io": "registries",
		"local": "meaning of its own", "printers.local": "meaning of its own", "localhost": "meaning of its own", "ip6.arpa": "meaning of its own", "x.onion": "meaning of its own",
	} {
		cfg := Config{Domain: domain, Socket: "/s"}
		err := cfg.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", domain, err, want)
		}
	}
	for domain, want := range map[string]string{"svc": "", "example.org": "example.org", "svc.example.org": "", "example.co.uk": "example.co.uk", "internal": ""} {
		if got := Shadows(domain); got != want {
			t.Errorf("%s shadows %q, want %q", domain, got, want)
		}
	}
}
