package support

import "regexp"

// secrets are what must not leave a machine, wherever it stands: join tokens, private keys, and what files and
// command lines call by such names.
var secrets = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`scaffold1-[A-Za-z0-9_-]+`), "scaffold1-REDACTED"},
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), "REDACTED PRIVATE KEY"},
	{regexp.MustCompile(`(?i)((?:token|password|passwd|secret|private[-_]?key|authorization)"?\s*[:=]\s*)("[^"\n]*"|[^\s,;}]+)`), "${1}REDACTED"},
	{regexp.MustCompile(`(?i)(--(?:token|password)\s+)\S+`), "${1}REDACTED"},
}

func redact(text []byte) []byte {
	for _, s := range secrets {
		text = s.pattern.ReplaceAll(text, []byte(s.instead))
	}
	return text
}
