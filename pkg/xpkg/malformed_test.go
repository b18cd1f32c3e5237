package xpkg_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// malformed is testdata/malformed/stream/cases.yaml; the README there explains it.
type malformed struct {
	Metas map[string]string `json:"metas"`
	Cases []struct {
		ID        string `json:"id"`
		Hardening string `json:"hardening"`
		What      string `json:"what"`
		Meta      string `json:"meta"`
		Stream    []part `json:"stream"`
		Requested string `json:"requested"`
		Policy    string `json:"policy"`
		Check     bool   `json:"check"`
		Expect    string `json:"expect"`
		Line      int    `json:"line"`
	} `json:"cases"`
}

type part struct {
	Text   string `json:"text"`
	Base64 string `json:"base64"`
	Repeat string `json:"repeat"`
	Number string `json:"number"`
	Times  int    `json:"times"`
}

func (p part) append(t *testing.T, to []byte) []byte {
	to = append(to, p.Text...)
	raw, err := base64.StdEncoding.DecodeString(p.Base64)
	if err != nil {
		t.Fatal(err)
	}
	to = append(to, raw...)
	for i := range p.Times {
		to = append(to, p.Repeat...)
		to = append(to, strings.ReplaceAll(p.Number, "%d", fmt.Sprint(i))...)
	}
	return to
}

func TestMalformedStreams(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "malformed", "stream", "cases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all malformed
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range all.Cases {
		if seen[c.ID] || c.What == "" || c.Hardening == "" {
			t.Errorf("case %q is there twice, or says too little", c.ID)
		}
		seen[c.ID] = true
		t.Run(c.ID, func(t *testing.T) {
			var stream []byte
			if c.Meta != "" {
				stream = []byte(all.Metas[c.Meta] + "---\n")
			}
			for _, p := range c.Stream {
				stream = p.append(t, stream)
			}
			policy := policyNamed(t, c.Policy)
			findings := lint(stream, xpkg.Kind(c.Requested), policy, c.Check)
			codes, line := fatal(findings)
			if want := strings.Fields(strings.TrimSuffix(c.Expect, "ok")); !slices.Equal(codes, want) {
				t.Errorf("got the errors %v, want %v:\n%v", codes, want, findings)
			}
			if c.Line != 0 && line != c.Line {
				t.Errorf("the first error is at line %d, want %d", line, c.Line)
			}
			for _, f := range findings {
				if strings.ContainsFunc(f.String(), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
					t.Errorf("%q is not safe to print", f)
				}
			}
		})
	}
	if len(all.Cases) < 45 {
		t.Errorf("only %d cases", len(all.Cases))
	}
}

func policyNamed(t *testing.T, name string) xpkg.Policy {
	switch name {
	case "", "install":
		return xpkg.PolicyInstall()
	case "build":
		return xpkg.PolicyBuild()
	case "build-strict":
		return xpkg.PolicyBuild().Strict()
	case "install-strict":
		return xpkg.PolicyInstall().Strict()
	}
	t.Fatalf("no policy %q", name)
	return xpkg.Policy{}
}

func lint(stream []byte, expect xpkg.Kind, policy xpkg.Policy, deep bool) []xpkg.Finding {
	read := xpkg.ReadOptions{Policy: policy, Expect: expect}
	if deep {
		return check.Stream(stream, read, check.Options{Policy: policy, CRDs: crdvalidation.ValidateCRD})
	}
	pkg, err := xpkg.Read(stream, read)
	if err != nil {
		return xpkg.Findings(err)
	}
	return pkg.Findings
}

// fatal returns the codes of the errors, sorted and without duplicates, and the
// line of the first.
func fatal(findings []xpkg.Finding) (codes []string, line int) {
	for _, f := range findings {
		if f.Severity != xpkg.Error {
			continue
		}
		if len(codes) == 0 {
			line = f.Line
		}
		codes = append(codes, f.Code.Name)
	}
	slices.Sort(codes)
	return slices.Compact(codes), line
}
