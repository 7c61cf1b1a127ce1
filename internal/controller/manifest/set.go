package manifest

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/permit"
	"scaffold.dev/scaffold/internal/yamlfile"
)

// maxFile bounds one file: services by the hundred thousand fit.
const maxFile = 64 << 20

// A Set is what files say.
type Set struct {
	Services []*apiv1.ServiceSpec
	Sites    []*apiv1.BoostSiteSpec
	Entries  []*apiv1.BoostEntrySpec
	spoken   bool                        // there was a document
	at       map[string]map[string]place // by service, or kind and name, and field; field "" is the thing itself
}

// Load reads files, all *.yaml and *.yml of directories, and stdin for "-". An error of type yamlfile.Errors
// is all that is wrong with them.
func Load(paths []string, stdin io.Reader) (*Set, error) {
	set := &Set{at: map[string]map[string]place{}}
	var bad yamlfile.Errors
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := read(file, stdin)
			if err != nil {
				return nil, err
			}
			name := file
			if file == "-" {
				name = "stdin"
			}
			bad = append(bad, set.add(name, text)...)
		}
	}
	if !set.spoken && len(bad) == 0 && len(paths) > 0 {
		bad = append(bad, nothing(paths[0]))
	}
	return set, bad.Sorted()
}

// nothing is the mistake of files that say nothing at all: an export that failed leaves such, and with --prune they
// would take away everything.
func nothing(path string) yamlfile.LineError {
	if path == "-" {
		path = "stdin"
	}
	return yamlfile.LineError{Path: path, Line: 1, Text: "nothing is in it; `services:` alone says that there are none"}
}

// Parse reads one text; path names it in errors.
func Parse(path string, text []byte) (*Set, error) {
	set := &Set{at: map[string]map[string]place{}}
	return set, set.add(path, text).Sorted()
}

func (s *Set) add(path string, text []byte) yamlfile.Errors {
	r := &reader{Reader: yamlfile.Reader{Path: path, Columns: true}, set: s}
	r.keys = func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		return bounded(name, permit.MaxFile)
	}
	r.documents(text)
	return r.Errs
}

// expand is the files that a path stands for.
func expand(path string) ([]string, error) {
	info, err := os.Stat(path)
	if path == "-" || err == nil && !info.IsDir() {
		return []string{path}, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			all = append(all, filepath.Join(path, e.Name()))
		}
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("the directory %s has no *.yaml: %w", path, fs.ErrNotExist)
	}
	return all, err
}

func read(path string, stdin io.Reader) ([]byte, error) {
	if path != "-" {
		return bounded(path, maxFile)
	}
	text, err := io.ReadAll(io.LimitReader(stdin, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("stdin: more than %d bytes", maxFile)
	}
	return text, err
}

func bounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > most {
		err = fmt.Errorf("%s: %d bytes, at most %d", path, info.Size(), most)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// Blame says what the controller found wrong of the lines that say it.
func (s *Set) Blame(problems []*apiv1.SpecProblem) yamlfile.Errors {
	var all yamlfile.Errors
	for _, p := range problems {
		fields := s.at[strings.TrimPrefix(p.Kind+" "+p.Service, " ")]
		at, ok := fields[p.Field]
		if !ok {
			at = fields[""]
		}
		all = append(all, yamlfile.LineError{Path: cmp.Or(at.path, strings.TrimSuffix(strings.TrimSuffix(cmp.Or(p.Kind, "services"), " site"), " entry")), Line: at.line, Column: at.column, Text: p.Text})
	}
	_ = all.Sorted()
	return all
}

// Format writes services, and sites and entries of boost where there are any, as a file.
func Format(all *apiv1.ExportResponse) ([]byte, error) {
	file := &yaml.Node{Kind: yaml.MappingNode}
	services, err := mapping(all.Services, func(s *apiv1.ServiceSpec) string { return s.Name }, func(s *apiv1.ServiceSpec, say func(string, any) error) error {
		for _, f := range fields {
			if err := say(f.name, f.write(s)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	file.Content = append(file.Content, word("services"), services)
	if len(all.BoostSites)+len(all.BoostEntries) > 0 {
		sites, err := mapping(all.BoostSites, func(s *apiv1.BoostSiteSpec) string { return s.Name }, written(siteKeys))
		if err != nil {
			return nil, err
		}
		entries, err := mapping(all.BoostEntries, func(e *apiv1.BoostEntrySpec) string { return e.Name }, written(entryKeys))
		if err != nil {
			return nil, err
		}
		file.Content = append(file.Content, word("boost"), &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{word("sites"), sites, word("entries"), entries}})
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err = e.Encode(file)
	return b.Bytes(), err
}

func word(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: text, Tag: "!!str"}
}

func written[S any](keys []key[S]) func(S, func(string, any) error) error {
	return func(s S, say func(string, any) error) error {
		for _, k := range keys {
			if err := say(k.name, k.write(s)); err != nil {
				return err
			}
		}
		return nil
	}
}

// mapping is things by name; each says what is to be written of it.
func mapping[S any](things []S, name func(S) string, each func(S, func(string, any) error) error) (*yaml.Node, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range slices.SortedFunc(slices.Values(things), func(a, b S) int { return cmp.Compare(name(a), name(b)) }) {
		one := &yaml.Node{Kind: yaml.MappingNode}
		err := each(s, func(name string, v any) error {
			if v == nil {
				return nil
			}
			return put(one, name, v)
		})
		if err != nil {
			return nil, err
		}
		if len(one.Content) == 0 {
			one = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
		}
		root.Content = append(root.Content, word(name(s)), one)
	}
	if len(things) == 0 {
		root = &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	}
	return root, nil
}

func put(to *yaml.Node, name string, v any) error {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		return err
	}
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	to.Content = append(to.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, &n)
	return nil
}
