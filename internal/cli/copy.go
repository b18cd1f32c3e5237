package cli

import (
	"fmt"
)

type copyCmd struct {
	Source      string `arg:"" name:"src" help:"What to copy: a reference, a .xpkg file, oci:DIR for the folder of an OCI layout, or - for standard input."`
	Destination string `arg:"" name:"dst" help:"Where to copy it to: a reference, a file, oci:DIR, or - for standard output."`
	transferFlags
	dataDirFlag
}

// Run copies a package with everything that belongs to it. Not a byte of it
// changes.
func (c *copyCmd) Run(env *Env) error {
	from, err := parsePlace(c.Source)
	if err != nil {
		return err
	}
	to, err := parsePlace(c.Destination)
	if err != nil {
		return err
	}
	c.keychain = c.writeKeychain()
	return copyPackage(env, c.transferFlags, from, to)
}

// copyPackage copies and says what is where now. The line goes to standard error
// when standard output carries the package.
func copyPackage(env *Env, flags transferFlags, from, to place) (err error) {
	p := begin(env.Stderr, "copying %s to %s", from, to)
	defer p.end()
	m, err := flags.mover(env, p, from, to)
	if err != nil {
		return err
	}
	defer m.remote.Close()
	o, err := m.open(env.Context, from)
	if err != nil {
		return err
	}
	defer closing(&err, o)
	digest, err := m.write(env.Context, to, o, o.ref.Tag)
	p.end()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(to.messages(env), safe(to.at(digest)))
	return err
}
