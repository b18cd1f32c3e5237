package author

import (
	"fmt"
	"io"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// authorPolicy returns the severity of findings for package authors.
func authorPolicy(strict bool) xpkg.Policy {
	if strict {
		return xpkg.PolicyBuild().Strict()
	}
	return xpkg.PolicyBuild()
}

// everyCheck returns the options for all checks, including the validation of the API
// server.
func everyCheck(policy xpkg.Policy, limits xpkg.Limits) check.Options {
	return check.Options{Limits: limits, Policy: policy, CRDs: crdvalidation.ValidateCRD}
}

// WriteReport writes findings as text, JSON, YAML or SARIF.
func WriteReport(w io.Writer, findings []xpkg.Finding, sarif bool, output view.OutputFlag) error {
	if sarif {
		report, err := check.SARIF(findings)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", report)
		return err
	}
	if findings == nil {
		findings = []xpkg.Finding{}
	}
	return output.Print(w, findings, func(w io.Writer) { WriteFindings(w, findings) })
}

// WriteFindings writes one line for each finding.
func WriteFindings(w io.Writer, findings []xpkg.Finding) {
	for _, f := range findings {
		fmt.Fprintln(w, strings.ReplaceAll(terminal.Safe(f.String()), "\n", `\n`))
	}
}

// CountFindings returns the number of findings: "2 errors, 1 warning", or "no findings".
func CountFindings(findings []xpkg.Finding) (text string, failed bool) {
	n := map[xpkg.Severity]int{}
	for _, f := range findings {
		n[f.Severity]++
	}
	var parts []string
	for _, s := range []xpkg.Severity{xpkg.Error, xpkg.Warning} {
		if n[s] > 0 {
			parts = append(parts, wording.Count(n[s], s.String()))
		}
	}
	if len(parts) == 0 {
		return "no findings", false
	}
	return strings.Join(parts, ", "), n[xpkg.Error] > 0
}
