package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/format/apiserver"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// authorPolicy is how severe findings are for those who build a package.
func authorPolicy(strict bool) format.Policy {
	if strict {
		return format.PolicyBuild().Strict()
	}
	return format.PolicyBuild()
}

// everyCheck are all the checks that there are, the API server's own included.
func everyCheck(policy format.Policy, limits format.Limits) format.CheckOptions {
	return format.CheckOptions{Limits: limits, Policy: policy, CRDs: apiserver.ValidateCRD}
}

// writeFindings writes one line for each finding.
func writeFindings(w io.Writer, findings []format.Finding) error {
	for _, f := range findings {
		if _, err := fmt.Fprintln(w, strings.ReplaceAll(safe(f.String()), "\n", `\n`)); err != nil {
			return err
		}
	}
	return nil
}

// count says how many findings there are: "2 errors, 1 warning", or "no findings".
func count(findings []format.Finding) (text string, failed bool) {
	n := map[format.Severity]int{}
	for _, f := range findings {
		n[f.Severity]++
	}
	var parts []string
	for _, s := range []format.Severity{format.Error, format.Warning} {
		if n[s] > 0 {
			parts = append(parts, wording.Count(n[s], s.String()))
		}
	}
	if len(parts) == 0 {
		return "no findings", false
	}
	return strings.Join(parts, ", "), n[format.Error] > 0
}
