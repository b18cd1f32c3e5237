package packages

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// consentError returns the error of a plan that can be applied only with --yes, or nil, for a command with this flag.
func consentError(p *planner.Plan) error { return adviseYes(p.ConsentError(), "use --yes") }

// afterDryRun is how the user continues after the dry run of a plan that needs consent. The command of the user may
// have --yes already.
const afterDryRun = "run the command with --yes and without --dry-run"

// adviseYes adds to a missing consent how the user continues without a remedy.
func adviseYes(err error, how string) error {
	if err == nil {
		return nil
	}
	f := errcode.From(err)
	return f.Also("To continue anyway, %s.", how)
}

// toContinue returns how the user continues with a plan: with the command that changes the install object that
// maintains its package, or as given.
func toContinue(p *planner.Plan, how string) string {
	if p.Maintained != nil {
		return "run `" + p.Maintained.Command + "`"
	}
	return how
}

// adviseDryRun adds to a missing confirmation the command that shows the changes: the command of the user with
// --dry-run. Each command that asks through it has this flag.
func adviseDryRun(env *terminal.Env, err error) error {
	if !errors.Is(err, terminal.ErrNotConfirmed) || len(env.Args) == 0 {
		return err
	}
	return errcode.From(err).
		WithDo("Review the changes with `%s`, then run the command with --yes.", env.CommandWith("--dry-run"))
}

// consents are the flags that confirm the effects of a plan in advance.
type consents struct {
	AllowWebhooks bool     `help:"Allow webhooks of the package to cover resources that it does not define: exactly those that the plan shows."`
	Adopt         bool     `help:"Let the package adopt objects that exist and that belong to no package: exactly those that the plan shows. Uninstalling the package does not delete them."`
	Accept        []broken `placeholder:"CRD/RULE" help:"Accept that this version breaks custom resources of a CRD by a rule, as a refused plan names them. Can be given more than once."`
}

// broken is a rule by which a version breaks custom resources of a CRD, as "CRD/RULE".
type broken string

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *broken) UnmarshalText(text []byte) error {
	crd, rule, _ := strings.Cut(string(text), "/")
	if !strings.Contains(crd, ".") || rule == "" || strings.Contains(rule, "/") {
		return fmt.Errorf("%q is not CRD/RULE, such as boats.example.org/FieldRemoved", text)
	}
	*b = broken(text)
	return nil
}

// accepted returns the rules that are accepted.
func (c consents) accepted() []string {
	var out []string
	for _, b := range c.Accept {
		out = append(out, string(b))
	}
	return out
}

// given reports whether any of the flags is set.
func (c consents) given() bool { return c.AllowWebhooks || c.Adopt || len(c.Accept) > 0 }
