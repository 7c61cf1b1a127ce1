package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// output is the -o flag: "table" for people, "json" for programs.
type output string

func addOutput(flags *pflag.FlagSet) *output {
	o := output("table")
	flags.VarP(&o, "output", "o", "what to print: table or json")
	return &o
}

// String, Set and Type make it a flag that refuses other formats at once.
func (o *output) String() string { return string(*o) }

// Set implements pflag.Value.
func (o *output) Set(s string) error {
	if s != "table" && s != "json" {
		return fmt.Errorf("want table or json")
	}
	*o = output(s)
	return nil
}

// Type implements pflag.Value.
func (o *output) Type() string { return "format" }

func (o *output) json() bool { return *o == "json" }

// print writes msg as JSON, or what table draws.
func (o *output) print(w io.Writer, msg proto.Message, table func(*table)) error {
	if o.json() {
		return writeJSON(w, msg, "  ")
	}
	return drawTable(w, table)
}

// writeJSON writes the message in protobuf's JSON mapping, the same that the HTTP API speaks; an
// empty indent means one line. protojson varies its white space on purpose, so it is laid out anew.
func writeJSON(w io.Writer, msg proto.Message, indent string) error {
	raw, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(msg)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if indent == "" {
		err = json.Compact(&out, raw)
	} else {
		err = json.Indent(&out, raw, "", indent)
	}
	if err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// writeValue writes as JSON what is no message of the API.
func writeValue(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// A table aligns its columns.
type table struct{ tw *tabwriter.Writer }

func drawTable(w io.Writer, draw func(*table)) error {
	t := &table{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	draw(t)
	return t.tw.Flush()
}

// row prints the cells; an empty one is shown as a dash so that columns stay countable.
func (t *table) row(cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		if text[i] = fmt.Sprint(c); text[i] == "" {
			text[i] = "-"
		}
	}
	fmt.Fprintln(t.tw, strings.Join(text, "\t"))
}

// age says how long ago a time in milliseconds since 1970 was; "" for never.
func age(unixMS int64) string {
	if unixMS == 0 {
		return ""
	}
	return short(max(0, time.Since(time.UnixMilli(unixMS))))
}

// short prints a duration with one unit below the largest: people compare, they do not calculate.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
