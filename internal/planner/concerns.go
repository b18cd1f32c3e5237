package planner

import (
	"fmt"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// maxConcerns limits the objects in a warning about concerns.
const maxConcerns = 3

// concerns returns a warning for each kind of concern about the objects of a package that changes create or update.
func concerns(pkg *xpkg.Package, changes []plan.Change) []string {
	written := map[[2]string]bool{}
	for _, c := range changes {
		if !c.MetadataOnly && (c.Action == plan.Create || c.Action == plan.Update) {
			written[[2]string{c.Ref.Kind, c.Ref.Name}] = true
		}
	}
	var objects []xpkg.Object
	for _, o := range pkg.Objects {
		if written[[2]string{o.GVK.Kind, o.Name}] {
			objects = append(objects, o)
		}
	}
	var codes []string
	texts := map[string][]string{}
	for _, f := range check.Concerns(objects) {
		if texts[f.Code.Name] == nil {
			codes = append(codes, f.Code.Name)
		}
		texts[f.Code.Name] = append(texts[f.Code.Name], fmt.Sprintf("%s %s: %s", f.Kind, f.Name, f.Text()))
	}
	var out []string
	for _, code := range codes {
		out = append(out, code+": "+wording.Few(texts[code], maxConcerns, "; ")+".")
	}
	return out
}
