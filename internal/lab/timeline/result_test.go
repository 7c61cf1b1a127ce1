package timeline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestASavedResultIsDrawnAsTheRunWas(t *testing.T) {
	r := &Result{
		Name: "watched", Title: "What is measured", Took: 0.9,
		Steps:  []StepResult{{At: 0.2, Began: 0.2, Do: "exec c1: true", Label: "talks"}},
		Series: []SeriesResult{{Name: "sent", Panel: "Mbit/s", Points: [][2]float64{{0.1, 0}, {0.3, 2.5}}}},
	}
	dir := filepath.Join(t.TempDir(), "new")
	paths, err := r.Save(dir)
	if err != nil || len(paths) != 3 {
		t.Fatalf("saved %v, %v", paths, err)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", path, err)
		}
	}
	again, err := LoadResult(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	svg, _ := os.ReadFile(paths[1])
	if _, err := again.Plot(dir); err != nil {
		t.Fatal(err)
	}
	if drawn, _ := os.ReadFile(paths[1]); string(drawn) != string(svg) || !strings.Contains(string(svg), ">What is measured<") || !strings.Contains(string(svg), ">talks<") {
		t.Error("the plot of what was saved is not that of the run")
	}
}

func TestWhatIsNoResultIsNotDrawn(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"steps: []": "not the result", `{"name": "../x"}`: "not the result", `{"name": "x", "took_s": 1}`: "nothing was measured",
	} {
		path := filepath.Join(dir, "r.json")
		os.WriteFile(path, []byte(text), 0o644)
		r, err := LoadResult(path)
		if err == nil {
			_, err = r.Plot(dir)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
