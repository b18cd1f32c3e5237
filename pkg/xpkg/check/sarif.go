package check

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// SARIF returns findings as a report of the Static Analysis Results Interchange Format
// 2.1.0, which code hosts show beside the lines of a change. The encoding is
// deterministic.
func SARIF(findings []xpkg.Finding) ([]byte, error) {
	run := sarifRun{
		Tool: sarifTool{Driver: sarifDriver{
			Name: "xpkg", InformationURI: "https://github.com/xpkg-dev/xpkg", Rules: sarifRules(findings),
		}},
		Results: make([]sarifResult, 0, len(findings)),
	}
	for _, f := range findings {
		run.Results = append(run.Results, sarifResultOf(f))
	}
	return json.MarshalIndent(sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{run},
	}, "", "  ")
}

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID    string    `json:"id"`
	Short sarifText `json:"shortDescription"`
	Help  sarifText `json:"help"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations,omitempty"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

// sarifRules returns a rule for each code of the findings, ordered by name.
func sarifRules(findings []xpkg.Finding) []sarifRule {
	var codes []errcode.Code
	for _, f := range findings {
		if !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	slices.SortFunc(codes, func(a, b errcode.Code) int { return strings.Compare(a.Name, b.Name) })
	rules := make([]sarifRule, 0, len(codes))
	for _, c := range codes {
		rules = append(rules, sarifRule{ID: c.Name, Short: sarifText{c.Cause}, Help: sarifText{c.Fix}})
	}
	return rules
}

func sarifResultOf(f xpkg.Finding) sarifResult {
	r := sarifResult{RuleID: f.Code.Name, Level: f.Severity.String(), Message: sarifText{f.Description()}}
	if f.File == "" {
		return r
	}
	at := sarifPhysical{Artifact: sarifArtifact{URI: sarifURI(f.File)}}
	if f.Line > 0 {
		at.Region = &sarifRegion{StartLine: f.Line}
	}
	r.Locations = []sarifLocation{{Physical: at}}
	return r
}

// sarifURI returns a path as a relative URI reference.
func sarifURI(path string) string { return (&url.URL{Path: path}).String() }
