package timeline

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/lab/file"
)

// The plots in the documents are those of the results beside them; make experiments writes both.
func TestPlotsAreOfTheRecordedResults(t *testing.T) {
	results, _ := filepath.Glob("../../../docs/experiments/*.json")
	if len(results) < 5 {
		t.Fatalf("only %d results in docs/experiments", len(results))
	}
	for _, path := range results {
		if strings.HasPrefix(filepath.Base(path), "sos_") { // of no lab: the benchmarks draw them (bench/sos)
			continue
		}
		r, err := LoadResult(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := file.Load("../../../examples/experiments/" + r.Name + ".yaml"); err != nil || r.Failed() {
			t.Errorf("%s: of a run that failed, or of no lab file: %v", path, err)
		}
		var svg bytes.Buffer
		if err := r.Figure().SVG(&svg); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		drawn := strings.TrimSuffix(path, ".json") + ".svg"
		if want, _ := os.ReadFile(drawn); svg.String() != string(want) {
			t.Errorf("%s is another picture: scaffold lab plot %s", drawn, path)
		}
	}
}
