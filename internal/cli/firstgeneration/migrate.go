package firstgeneration

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/apiserver"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/manager"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/migration/firstgeneration"
)

// MigrateCmd implements `xpkg migrate first-generation`.
type MigrateCmd struct {
	manager.ManagerFlags
	FormerManager  []string `placeholder:"DEPLOYMENT" help:"Deployment of the former package manager in the namespace. Default is crossplane-package-manager and crossplane-stack-manager. Can be given more than once."`
	Replace        string   `placeholder:"FILE" help:"File with lines OLD=NEW, which replace packages: OLD is the package or the CRD of an install object, and NEW a reference."`
	WithoutManager bool     `help:"Do not install the manager, which is started afterwards, as with xpkg up."`
	manager.MigrateFlags
	content.ContentFlags
}

// Run moves the packages of the first generation in a cluster to the manager.
func (c *MigrateCmd) Run(env *terminal.Env) (err error) {
	options, err := c.Options(env.Context, nil)
	if err != nil {
		return err
	}
	replacements, err := readReplacements(env, c.Replace)
	if err != nil {
		return err
	}
	cfg, cluster, err := c.Connect(env.Context)
	if err != nil {
		return err
	}
	writer, err := apply.NewCluster(cfg)
	if err != nil {
		return apiserver.Classify(err, "reach the cluster")
	}
	source := &content.LazySource{Flags: c.ContentFlags}
	defer func() { err = cmp.Or(err, source.Close()) }()
	m := &firstgeneration.Migration{
		Client: cluster, Cluster: writer, Content: source, Manager: options, WithoutManager: c.WithoutManager,
		FormerManagers: c.FormerManager, Replacements: replacements,
	}
	return c.Migrate(env, m.Plan)
}

// maxReplacements limits the size of a file with replacements.
const maxReplacements = 1 << 20

// readReplacements reads a file with lines of the form OLD=NEW. Empty lines and lines that start with # are ignored.
func readReplacements(env *terminal.Env, file string) (_ map[string]string, err error) {
	if file == "" {
		return nil, nil
	}
	in, err := env.OpenInput(file)
	if err != nil {
		return nil, terminal.ErrUsage.New(err, "cannot read --replace")
	}
	defer terminal.Close(&err, in)
	text, err := io.ReadAll(io.LimitReader(in, maxReplacements+1))
	if err == nil && len(text) > maxReplacements {
		err = fmt.Errorf("the file is larger than %d bytes", maxReplacements)
	}
	if err != nil {
		return nil, terminal.ErrUsage.New(err, "cannot read --replace")
	}
	out := map[string]string{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		from, to, ok := strings.Cut(line, "=")
		from, to = strings.TrimSpace(from), strings.TrimSpace(to)
		if !ok || from == "" || to == "" {
			return nil, terminal.ErrUsage.New(nil, "line %d of %s is not of the form OLD=NEW", number, file)
		}
		if _, twice := out[from]; twice {
			return nil, terminal.ErrUsage.New(nil, "line %d of %s replaces %s again", number, file, from)
		}
		out[from] = to
	}
	return out, nil
}
