package rules

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The pages of docs/life tell what happens to one thing, function by function. Each step is a line of a list:
//
//  3. [`session.go: Session.Register`](../../internal/x/session.go) what it does → `Register`
//
// What is in code at its end says how the next step is reached. After → it is the next function, which this one calls: nothing
// is left out between the two. After ↩ it is a step of before, which called this one and goes on with what it gives. After ⇢ the
// thing is handed over without a call, by a message, a queue, a map or a function that was given before, and both steps name what
// it is handed over by.
//
// The heading says how many functions and forms the page has; the forms are a list of their own:
//
//   - [`policy.go: Policy`](../../internal/x/policy.go) what it is
var (
	lifeStep  = regexp.MustCompile("^([0-9]+)\\. \\[`([^:`]+): ([^`]+)`\\]\\(([^)]+)\\)(.*)$")
	lifeWay   = regexp.MustCompile("(→|↩|⇢) `([^`]+)`$")
	lifeForm  = regexp.MustCompile("^- \\[`([^:`]+): ([^`]+)`\\]\\(([^)]+)\\)")
	lifeTotal = regexp.MustCompile(`^# The life of [^\n:]*: ([0-9]+) functions, ([0-9]+) forms\n`)
)

// What a walk should come to, from its beginning to its end. A page that shows more says why, below lifeExcuse.
const (
	hopsAtMost  = 12
	formsAtMost = 4
	lifeExcuse  = "\n## Why it is more than 12 functions and 4 forms\n"
)

type hop struct{ where, name, body, by, way string }

// TestLivesAreTold: each function of a walk is there, and each leads to the next as the page says.
func TestLivesAreTold(t *testing.T) {
	for _, page := range lives(t) {
		for _, walk := range strings.Split(page.text, "\n## ") {
			follow(t, page.name, page.file, walk)
		}
	}
}

// TestLivesSayHowLongTheyAre: no page claims fewer functions or forms than it shows.
func TestLivesSayHowLongTheyAre(t *testing.T) {
	for _, page := range lives(t) {
		steps, forms := 0, 0
		for line := range strings.Lines(page.text) {
			line = strings.TrimSuffix(line, "\n")
			if lifeStep.MatchString(line) {
				steps++
			}
			if m := lifeForm.FindStringSubmatch(line); m != nil {
				forms++
				formIsThere(t, page, m[1], m[2], m[3])
			}
		}
		says := lifeTotal.FindStringSubmatch(page.text)
		if says == nil || says[1] != fmt.Sprint(steps) || says[2] != fmt.Sprint(forms) {
			t.Errorf("%s: its heading is to end with: %d functions, %d forms", page.name, steps, forms)
		}
		if long := steps > hopsAtMost || forms > formsAtMost; long != strings.Contains(page.text, lifeExcuse) {
			t.Errorf("%s has %d functions and %d forms, where %d and %d are the aim: longer ones, and no others, have a section%q", page.name, steps, forms, hopsAtMost, formsAtMost, lifeExcuse)
		}
	}
}

// formIsThere holds a form to the code.
func formIsThere(t *testing.T, page life, base, name, link string) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(page.file), link))
	if err != nil || path.Base(link) != base {
		t.Errorf("%s: %s is not %s: %v", page.name, link, base, err)
	}
	if !regexp.MustCompile(`(?m)^\s*(type|struct|message) ` + regexp.QuoteMeta(name) + `\b`).Match(text) {
		t.Errorf("%s: %s declares no %s", page.name, link, name)
	}
}

type life struct{ name, file, text string }

func lives(t *testing.T) (pages []life) {
	files, err := filepath.Glob(filepath.Join(root(t), "docs", "life", "*.md"))
	if err != nil || len(files) < 4 {
		t.Fatalf("docs/life has %d pages, want four or more: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, life{filepath.Base(file), file, string(text)})
	}
	return pages
}

// follow reads the lists of one section of a page, and holds them to the code.
func follow(t *testing.T, page, file, walk string) {
	var hops []hop
	for line := range strings.Lines(walk) {
		m := lifeStep.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			if regexp.MustCompile(`^[0-9]+\. `).MatchString(line) {
				t.Errorf("%s: a step has another form: %s", page, line)
			}
			continue
		}
		h := hop{where: fmt.Sprintf("%s, step %s", page, m[1]), name: m[3]}
		if m[1] == "1" && len(hops) > 0 {
			connected(t, page, hops)
			hops = nil
		}
		if fmt.Sprint(len(hops)+1) != m[1] {
			t.Errorf("%s: it is number %d of its list", h.where, len(hops)+1)
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(file), m[4]))
		if err != nil || path.Base(m[4]) != m[2] {
			t.Errorf("%s: %s is not %s: %v", h.where, m[4], m[2], err)
		}
		if h.body = bodyOf(string(text), h.name); h.body == "" {
			t.Errorf("%s: %s has no function %s", h.where, m[4], h.name)
		}
		if way := lifeWay.FindStringSubmatch(m[5]); way != nil {
			h.by, h.way = way[1], way[2]
		}
		hops = append(hops, h)
	}
	connected(t, page, hops)
}

// connected holds one list to the code.
func connected(t *testing.T, page string, hops []hop) {
	if len(hops) > hopsAtMost {
		t.Errorf("%s: a walk of %d functions, at most %d: change the code rather than the page", page, len(hops), hopsAtMost)
	}
	for i, h := range hops[:max(0, len(hops)-1)] {
		next := hops[i+1]
		switch h.by {
		case "":
			t.Errorf("%s does not say at its end how the next is reached: → `function`, ↩ `step`, or ⇢ `word`", h.where)
		case "→":
			if plain(next.name) != h.way || !calls(h.body, h.way) {
				t.Errorf("%s: %s is to call %s, the next step: what is between them is left out, or it is handed over (⇢)", h.where, h.name, next.name)
			}
		case "↩":
			returns(t, hops[:i], h, next)
		case "⇢":
			if !names(h.body, h.way) || !names(next.body, h.way) {
				t.Errorf("%s: %s and %s do not both name %s", h.where, h.name, next.name, h.way)
			}
		}
	}
}

// returns holds a step that gives something back to the one that called it, and which calls the next.
func returns(t *testing.T, before []hop, h, next hop) {
	for _, b := range slices.Backward(before) {
		if plain(b.name) == h.way {
			if !calls(b.body, plain(next.name)) {
				t.Errorf("%s: %s, to which it returns, does not call %s", h.where, b.name, next.name)
			}
			return
		}
	}
	t.Errorf("%s: no step before it is %s", h.where, h.way)
}

// plain is the name of a method without its type.
func plain(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// calls reports whether a function calls one of that name, or gives it to another one to call.
func calls(body, word string) bool {
	_, inside, _ := strings.Cut(body, "{") // behind its own name
	return regexp.MustCompile(`(^|[^A-Za-z0-9_])` + regexp.QuoteMeta(word) + `(\[[^\]]*\])?(\(|[,)])`).MatchString(inside)
}

func names(body, word string) bool {
	return regexp.MustCompile(`(^|[^A-Za-z0-9_])` + regexp.QuoteMeta(word) + `($|[^A-Za-z0-9_])`).MatchString(body)
}

// bodyOf is the text of a function of Go, `Name` or `Type.Name`, or of C, whose end is a brace in the first column.
func bodyOf(text, name string) string {
	word := regexp.QuoteMeta(plain(name))
	begin := `(?m)^(func ` + word + `\b|[a-z_][^\n;]*\b` + word + `\()`
	if kind, _, is := strings.Cut(name, "."); is {
		begin = `(?m)^func \([a-zA-Z_]+ \*?` + regexp.QuoteMeta(kind) + `(\[[^\]]*\])?\) ` + word + `\(`
	}
	for _, at := range regexp.MustCompile(begin).FindAllStringIndex(text, -1) {
		line, _, _ := strings.Cut(text[at[0]:], "\n")
		if strings.HasSuffix(line, " }") { // one line
			return line
		}
		if end := strings.Index(text[at[0]:], "\n}"); end >= 0 && !strings.HasSuffix(line, ";") {
			return text[at[0] : at[0]+end]
		}
	}
	return ""
}
