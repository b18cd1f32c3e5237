package author

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/location"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/cli/view"
	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/validation"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/project"
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

// CompositionFindings returns the findings about the Compositions of a package that need no other package.
func CompositionFindings(
	ctx context.Context, pkg *xpkg.Package, embedded []EmbeddedFunction, strict bool,
) ([]xpkg.Finding, error) {
	docs := validation.Compositions(pkg)
	if len(docs) == 0 {
		return nil, nil
	}
	v, err := validation.New()
	if err != nil {
		return nil, err
	}
	v.Kinds, v.AnyFunction = validation.Partial, pkg.Meta.Kind == ""
	v.AddPackage(pkg, pkg.Meta.Name)
	v.AddDependencies(pkg.Meta)
	AddEmbedded(v, embedded)
	for _, r := range v.Read(docs) {
		v.Validate(ctx, r)
	}
	return strictly(v.Findings, strict), nil
}

// LintFolder returns the findings about the package in a folder without those about its Compositions, the package as
// far as it can be read, and the functions of its Project.
func LintFolder(
	ctx context.Context, flags location.FolderFlags, dir string, strict bool, limits xpkg.Limits,
) (*xpkg.Folder, *xpkg.Package, []EmbeddedFunction, []xpkg.Finding, error) {
	folder, err := flags.Read(ctx, dir, limits)
	if found := xpkg.Findings(err); found != nil {
		return nil, nil, nil, flags.Place(dir, found), nil
	}
	if err != nil {
		return nil, nil, nil, nil, err
	}
	embedded, err := EmbeddedFunctions(flags, dir, limits)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	policy := authorPolicy(strict)
	pkg, found := folder.Inspect(xpkg.ReadOptions{Policy: policy, Limits: limits})
	found = flags.Place(dir, slices.Concat(found, check.Package(pkg, everyCheck(policy, limits))))
	for _, f := range embedded {
		found = append(found, unbuildable(dir, []project.Function{f.Function})...)
		if f.Language != project.GoTemplates {
			continue
		}
		more, err := templateFindings(filepath.Join(dir, filepath.FromSlash(f.Folder)))
		if err != nil {
			return nil, nil, nil, nil, err
		}
		found = append(found, more...)
	}
	return folder, pkg, embedded, found, nil
}

// ReportFlags select the format of a report of findings.
type ReportFlags struct {
	SARIF bool `name:"sarif" help:"Print a SARIF report for code review tools."`
	view.OutputFlag
}

// CheckFormat returns an error for two formats.
func (f ReportFlags) CheckFormat() error {
	if f.SARIF && f.Output != "" {
		return terminal.ErrUsage.New(nil, "--sarif and --output cannot be used together")
	}
	return nil
}

// WriteReport writes findings as text, JSON, YAML or SARIF.
func (f ReportFlags) WriteReport(w io.Writer, findings []xpkg.Finding) error {
	if f.SARIF {
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
	return f.Print(w, findings, func(w io.Writer) {
		WriteFindings(w, findings)
		writeFixes(w, findings)
	})
}

// WriteFindings writes one line for each finding.
func WriteFindings(w io.Writer, findings []xpkg.Finding) {
	for _, f := range findings {
		fmt.Fprintln(w, strings.ReplaceAll(terminal.Safe(f.String()), "\n", `\n`))
	}
}

// writeFixes writes what to do about the findings, once for each code.
func writeFixes(w io.Writer, findings []xpkg.Finding) {
	var fixes []string
	for _, f := range findings {
		if text := f.Code.Name + ": " + cmp.Or(f.Fix, f.Code.Fix); !slices.Contains(fixes, text) {
			fixes = append(fixes, text)
		}
	}
	if len(fixes) > 0 {
		slices.Sort(fixes)
		fmt.Fprintf(w, "\nWhat to do:\n  %s\n", terminal.Safe(strings.Join(fixes, "\n  ")))
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
