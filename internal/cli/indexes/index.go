package indexes

import (
	"errors"
	"fmt"
	"time"

	"github.com/xpkg-dev/xpkg/internal/cli/content"
	"github.com/xpkg-dev/xpkg/internal/cli/flags"
	"github.com/xpkg-dev/xpkg/internal/cli/terminal"
	"github.com/xpkg-dev/xpkg/internal/indexer"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/catalog"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// IndexCmd groups the commands for one index.
type IndexCmd struct {
	Build  BuildCmd  `cmd:"" help:"Build an index from repositories, registries and other indexes, and push it."`
	Update UpdateCmd `cmd:"" help:"Add the changes of its sources to an index."`
	Verify VerifyCmd `cmd:"" help:"Build an index again and compare it with the published one."`
	Show   ShowCmd   `cmd:"" help:"Show the state, the sources and the newest events of an index."`
}

// readFlags configure how packages are read.
type readFlags struct {
	Texts    bool `help:"Add field names, descriptions and readmes to the index, for searching them. This reads the whole newest version of each package."`
	Parallel int  `default:"32" placeholder:"N" help:"Versions to read at the same time. Default is 32."`
	content.IndexKeyFlag
	content.ContentFlags
}

// buildFlags configure how an index is built and pushed.
type buildFlags struct {
	readFlags
	ValidFor time.Duration `placeholder:"DURATION" help:"Time after which clients refuse the index unless it is updated, for example 720h. Default is the duration of the former state, otherwise unlimited."`
	SignKey  string        `placeholder:"FILE" help:"Private key that signs the index (PEM): ECDSA with the curve P-256, or Ed25519."`
	DryRun   bool          `help:"Show the changes without pushing them."`
}

// shortestValidity is the minimum of --valid-for. A state that expires before its clients read it is of no use.
const shortestValidity = time.Minute

// checkValidity fails for a time after which clients could never use the index. Times of an index are in seconds.
func (f *buildFlags) checkValidity() error {
	if f.ValidFor != 0 && f.ValidFor < shortestValidity {
		return terminal.ErrUsage.New(nil, "--valid-for %s is shorter than a minute", f.ValidFor).
			WithDo("Write a time in which the index is updated at least twice, such as 720h.")
	}
	f.ValidFor = f.ValidFor.Truncate(time.Second)
	return nil
}

// builder returns a builder, and the task that shows its progress.
func (f *readFlags) builder(env *terminal.Env, a *access, moved bool) (*indexer.Builder, *terminal.Task, error) {
	keys, err := f.Keys(env.Context)
	if err != nil {
		return nil, nil, err
	}
	task := terminal.StartTask(env.Stderr, "reading packages")
	return indexer.NewBuilder(indexer.Options{
		Remote: a.remote, Source: a.source, Store: a.cache.Store(), Keys: keys, Texts: f.Texts, Moved: moved,
		Parallel: f.Parallel,
		Progress: func(done, known int) {
			// A line for every version would fill the log of a job.
			if done%progressStep == 0 && done > 0 {
				task.Set("reading packages: %d of %d versions", done, known)
			}
		},
	}), task, nil
}

// progressStep is the number of versions after which the progress is reported.
const progressStep = 100

// former returns the published state of an index, and nil if there is none.
func former(env *terminal.Env, a *access, ref oci.Reference) (*catalog.Reader, error) {
	client := indexer.Client{Remote: a.remote, Store: a.cache.Store(), Now: func() time.Time { return time.Time{} }}
	r, err := client.Open(env.Context, ref)
	if indexer.IsAbsent(err) {
		return nil, nil
	}
	return r, err
}

// publish encodes, pushes and prints the next state of an index, in place of the one with the digest current; zero if
// there is none.
func (f *buildFlags) publish(
	env *terminal.Env, a *access, ref oci.Reference, current oci.Digest, p *indexer.Publishing,
) error {
	p.Created = time.Now()
	switch {
	case f.ValidFor > 0:
		p.Expires = p.Created.Add(f.ValidFor)
	case p.Former != nil && p.Former.Config().Expires.After(p.Former.Config().Created):
		c := p.Former.Config()
		p.Expires = p.Created.Add(c.Expires.Sub(c.Created))
	}
	image, events, err := p.Encode()
	if err != nil {
		return err
	}
	printEvents(env, events)
	printProblems(env, p.Catalog.Packages)
	if f.DryRun {
		fmt.Fprintln(env.Stderr, dryRun)
		return nil
	}
	if err := f.sign(env, a, ref, image.Manifest.Digest); err != nil {
		return err
	}
	if p.Former == nil {
		// Another process can have published a state while this one read the packages.
		if err := indexer.CheckCurrent(env.Context, a.remote, ref, current); err != nil {
			return err
		}
	}
	if err := indexer.Publish(env.Context, a.remote, ref, &image, p.Former); err != nil {
		return err
	}
	client := indexer.Client{Store: a.cache.Store()}
	if err := client.Published(env.Context, ref, &image); err != nil {
		return err
	}
	counts := p.Catalog.Config.Counts
	return env.Say("%s@%s: %s, %s, %s\n", ref, image.Manifest.Digest, wording.Count(counts.Packages, "package"),
		wording.Count(counts.Versions, "version"), wording.Count(counts.Kinds, "kind"))
}

// sign signs the next state of an index, if there is a key.
func (f *buildFlags) sign(env *terminal.Env, a *access, ref oci.Reference, d oci.Digest) error {
	signer, err := f.signer(env)
	if signer == nil || err != nil {
		return err
	}
	return signer.Push(env.Context, a.remote, ref, d)
}

// losesSignature reports whether the next state of an index would have no signature although one of the states that it
// follows has one.
func (f *buildFlags) losesSignature(
	env *terminal.Env, a *access, ref oci.Reference, former ...oci.Digest,
) (bool, error) {
	if f.SignKey != "" || f.DryRun {
		return false, nil
	}
	for _, d := range former {
		if d.IsZero() {
			continue
		}
		if signed, err := indexer.IsSigned(env.Context, a.remote, ref, d); signed || err != nil {
			return signed, err
		}
	}
	return false, nil
}

// checkSigned fails if the next state of an index would lose the signature: clients with a key refuse a state without
// one.
func (f *buildFlags) checkSigned(env *terminal.Env, a *access, ref oci.Reference, former ...oci.Digest) error {
	if loses, err := f.losesSignature(env, a, ref, former...); !loses || err != nil {
		return err
	}
	return terminal.ErrUsage.New(
		nil, "the newest state of %s is signed, and clients with a key refuse a state without a signature", ref,
	).
		WithDo(
			"Repeat the command with --sign-key and the file of the key. `xpkg index build` without --sign-key replaces the index by one without signatures.",
		)
}

// signer returns the signer with the key of the flags; nil if there is none.
func (f *buildFlags) signer(env *terminal.Env) (*indexer.Signer, error) {
	if f.SignKey == "" {
		return nil, nil
	}
	text, err := flags.ReadFile(env.Context, "the key that signs the index", f.SignKey)
	if err != nil {
		return nil, err
	}
	return indexer.ParseSigner(text)
}

// signUnchanged signs the published state of an index if there is a key that has not signed it, and reports whether it
// had to. A state can be older than the key.
func (f *buildFlags) signUnchanged(env *terminal.Env, a *access, ref oci.Reference, d oci.Digest) (bool, error) {
	signer, err := f.signer(env)
	if signer == nil || err != nil {
		return false, err
	}
	if signed, err := signer.HasSigned(env.Context, a.remote, ref, d); signed || err != nil {
		return false, err
	}
	if f.DryRun {
		fmt.Fprintln(env.Stderr, dryRun)
		return false, nil
	}
	return true, signer.Push(env.Context, a.remote, ref, d)
}

// repairable returns an error of a state of an index that cannot be used, with the command that replaces the state.
func repairable(ref oci.Reference, err error) error {
	switch {
	case errors.Is(err, indexer.ErrIndexNotFound):
		return errcode.From(err).WithDo(
			"Check the spelling. If the registry has lost the index, its publisher publishes it again with `xpkg index update %s --repair`.",
			ref,
		)
	case indexer.IsDamaged(err):
		return errcode.From(err).WithDo(
			"The publisher of the index replaces the state with `xpkg index update %s --repair`; an xpkg server that publishes the index does so when it restarts. If the error persists, the registry is damaged: restore it from a backup.",
			ref,
		)
	case errors.Is(err, indexer.ErrStaleIndex), errors.Is(err, indexer.ErrForkedIndex):
		return errcode.From(err).
			Also("The publisher of the index can continue the newest state instead: `xpkg index update %s --repair`.", ref)
	}
	return err
}

// dryRun is the note of a command that was asked to push nothing.
const dryRun = "dry run: nothing was pushed"

// damaged returns the place of an index among its states whose content cannot be read, with a warning; err is the
// reason. Other errors are returned.
func damaged(env *terminal.Env, a *access, ref oci.Reference, err error) (indexer.Replaced, error) {
	if !indexer.IsDamaged(err) {
		return indexer.Replaced{}, err
	}
	fmt.Fprintf(
		env.Stderr, "warning: the published state of %s is damaged and is replaced: %s\n", ref, terminal.Safe(err.Error()),
	)
	return indexer.ReadReplaced(env.Context, a.remote, ref), nil
}

// printProblems prints the packages that could not be read.
func printProblems(env *terminal.Env, packages []catalog.Package) {
	for _, p := range packages {
		if p.Error != nil {
			fmt.Fprintf(
				env.Stderr, "warning: %s: %s: %s\n", p.Repository, terminal.Safe(p.Error.Code), terminal.Safe(p.Error.Message),
			)
		}
	}
}

// maxPrinted is the number of events that a command prints.
const maxPrinted = 50

func printEvents(env *terminal.Env, events []catalog.Event) {
	for i, e := range events {
		if i == maxPrinted {
			fmt.Fprintf(env.Stderr, "and %s\n", wording.Count(len(events)-i, "more event"))
			return
		}
		fmt.Fprintln(env.Stderr, eventText(e))
	}
}

func eventText(e catalog.Event) string {
	switch {
	case e.Source != nil:
		return fmt.Sprintf("%s %s", e.Type, terminal.Safe(e.Source.Location))
	case e.Tag == "":
		return fmt.Sprintf("%s %s", e.Type, e.Repository)
	}
	return fmt.Sprintf("%s %s:%s", e.Type, e.Repository, e.Tag)
}

// withIndex calls do with the reference of an index and the access to registries, which includes the token for the
// registry of a local control plane.
func withIndex(
	env *terminal.Env, index string, f content.ContentFlags, do func(oci.Reference, *access) error,
) (err error) {
	ref, err := flags.ParseReference(index)
	if err != nil {
		return err
	}
	if ref.Tag == "" {
		return terminal.ErrUsage.New(nil, "%s names a digest, and an index is published under a tag", ref)
	}
	a, err := openAccess(env, f, flags.DataDirFlag{DataDir: f.DataDir}.WriteKeychain())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return do(ref, a)
}
