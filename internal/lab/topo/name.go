package topo

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxName is what a node of a lab may be called, in bytes.
const maxName = 32

// reserved is a name that labs keep for themselves.
const reserved = "mgmt"

// spelled are the Latin letters that Unicode does not take apart into a letter and its accents.
var spelled = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ħ", "h", "ı", "i")

// plain spells a label in a-z, 0-9 and inner dashes: Zürich is zurich, St. Gallen is st-gallen. It is ""
// where nothing of the label can be spelled so.
func plain(label string) string {
	var name strings.Builder
	for _, r := range norm.NFKD.String(spelled.Replace(strings.ToLower(label))) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			name.WriteRune(r)
		case unicode.Is(unicode.Mn, r) || r == '\'' || r == '’': // accents; L'Aquila is laquila
		case name.Len() > 0 && !strings.HasSuffix(name.String(), "-"):
			name.WriteByte('-')
		}
		if name.Len() >= maxName {
			break
		}
	}
	return strings.Trim(name.String()[:min(name.Len(), maxName)], "-")
}

// A namer gives names that nobody else has.
type namer struct {
	used  map[string]bool
	count map[string]int // of suffixes tried
}

func newNamer() *namer {
	return &namer{used: map[string]bool{reserved: true}, count: map[string]int{}}
}

// name spells a label; the second node of that label is LABEL-2. A number alone gets an n in front, and
// so does the number of a node whose label has no letter that can be spelled.
func (n *namer) name(label string, number int) string {
	name := plain(label)
	if name == "" {
		name = fmt.Sprint(number)
	}
	if strings.Trim(name, "0123456789") == "" {
		name = strings.Trim(("n" + name)[:min(len(name)+1, maxName)], "-")
	}
	wanted := name
	for n.used[name] {
		n.count[wanted]++
		suffix := fmt.Sprintf("-%d", n.count[wanted]+1)
		name = strings.TrimRight(wanted[:min(len(wanted), maxName-len(suffix))], "-") + suffix
	}
	n.used[name] = true
	return name
}
