// Package benchresult stores the results of benchmarks in a file, so that groups of benchmarks can be measured at
// different times, and a picture can be drawn from them.
package benchresult

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Row is the result of one measurement.
type Row struct {
	// Group is the group of benchmarks, and Size the number of CRDs or packages; 0 if the row does not depend on a size.
	Group string `json:"group"`
	Size  int    `json:"size,omitempty"`
	// Key identifies the operation for programs, and What describes it.
	Key  string `json:"key,omitempty"`
	What string `json:"what"`
	// Seconds, Floor, Server and Client are times in seconds: until the operation was finished, of the floor, and the
	// processor time of the API server and of the client.
	Seconds float64 `json:"seconds"`
	Floor   float64 `json:"floor,omitempty"`
	Server  float64 `json:"server,omitempty"`
	Client  float64 `json:"client,omitempty"`
	// Writes and Requests are the numbers of writes and of all calls.
	Writes   int `json:"writes,omitempty"`
	Requests int `json:"requests,omitempty"`
	// PeakMiB is the peak memory of the client.
	PeakMiB int64 `json:"peakMiB,omitempty"`
	// Noise is the share of the processors that other processes used.
	Noise float64 `json:"noise,omitempty"`
	// WorkMillis is the processor time of a fixed piece of work meanwhile, in milliseconds: it shows the speed of the
	// processors.
	WorkMillis float64 `json:"workMillis,omitempty"`
	Goals      []Goal  `json:"goals,omitempty"`
}

// Goal is a goal of a row, and its result.
type Goal struct {
	What string `json:"what"`
	// Result is Met, Missed or NotJudged.
	Result string `json:"result"`
}

// The results of goals. A goal of time is not judged if other processes used too much of the machine.
const (
	Met       = "met"
	Missed    = "missed"
	NotJudged = "not judged"
)

// Read reads the rows in a file. A missing file has none.
func Read(path string) ([]Row, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []Row
	return rows, json.Unmarshal(raw, &rows)
}

// Replace adds rows to a list, in place of those of the same groups and sizes, and sorts the list by group and size.
func Replace(list, rows []Row) []Row {
	type measured struct {
		group string
		size  int
	}
	now := map[measured]bool{}
	for _, r := range rows {
		now[measured{r.Group, r.Size}] = true
	}
	out := slices.DeleteFunc(slices.Clone(list), func(r Row) bool { return now[measured{r.Group, r.Size}] })
	out = append(out, rows...)
	slices.SortStableFunc(out, func(a, b Row) int {
		if a.Group != b.Group {
			return strings.Compare(a.Group, b.Group)
		}
		return a.Size - b.Size
	})
	return out
}

// Write writes rows to a file, one in a line.
func Write(path string, rows []Row) error {
	lines := make([]string, len(rows))
	for i, r := range rows {
		raw, err := json.Marshal(r)
		if err != nil {
			return err
		}
		lines[i] = string(raw)
	}
	return os.WriteFile(path, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644)
}
