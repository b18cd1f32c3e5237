package comptest

import (
	"encoding/xml"
	"io"
	"strings"
)

// Verdict is the outcome of a test.
type Verdict string

// Verdicts. A test that cannot run has an error.
const (
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
	Error   Verdict = "error"
	Skipped Verdict = "skipped"
)

// Result is the outcome of a test.
type Result struct {
	Name    string  `json:"name,omitempty"`
	File    string  `json:"file"`
	Verdict Verdict `json:"verdict"`
	// Message is the reason why the test is skipped, a note, or the error.
	Message string `json:"message,omitempty"`
	// Code and Fix are those of the error.
	Code string `json:"code,omitempty"`
	Fix  string `json:"fix,omitempty"`
	// Differences are those between what is asserted and what is rendered.
	Differences []Difference `json:"differences,omitempty"`
	// Updated reports whether the expected file was written.
	Updated bool `json:"updated,omitempty"`
}

// Report is the outcome of all tests.
type Report struct {
	Results  []Result       `json:"tests"`
	Coverage CoverageReport `json:"coverage"`
}

// Count returns the number of tests with a verdict.
func (r Report) Count(v Verdict) int {
	n := 0
	for _, one := range r.Results {
		if one.Verdict == v {
			n++
		}
	}
	return n
}

type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		File    string        `xml:"file,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",cdata"`
	}
)

// WriteJUnit writes the report as a suite in the XML of JUnit, without times, so that it is the same for each run.
func (r Report) WriteJUnit(w io.Writer) error {
	suite := junitSuite{
		Name: "xpkg test", Tests: len(r.Results), Failures: r.Count(Failed), Errors: r.Count(Error), Skipped: r.Count(Skipped),
	}
	for _, one := range r.Results {
		c := junitCase{Class: one.File, Name: one.Name, File: one.File}
		switch one.Verdict {
		case Failed:
			var lines []string
			for _, d := range one.Differences {
				lines = append(lines, d.String())
			}
			c.Failure = &junitMessage{Message: lines[0], Text: strings.Join(lines, "\n")}
		case Error:
			c.Error = &junitMessage{Message: one.Message, Type: one.Code, Text: one.Fix}
		case Skipped:
			c.Skipped = &junitMessage{Message: one.Message}
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
