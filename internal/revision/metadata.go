package revision

import (
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/check"
)

// ErrCommonMetadata is the code for common labels and annotations of a package that its objects cannot have.
var ErrCommonMetadata = errcode.Code{
	Name: "InvalidCommonMetadata", Class: errcode.Invalid,
	Cause: "The API server refuses a label or an annotation of spec.commonLabels or spec.commonAnnotations of a package, which every object of the package would have.",
	Fix:   "Correct the field of the package. Nothing was written.",
}

// checkMetadata fails if an API server would refuse the labels and annotations that the revision or the objects of a
// package get: with InvalidMetaLabels or MetaAnnotationsTooLarge for those of the content, and with
// InvalidCommonMetadata for those of the package.
func checkMetadata(p v1.Package, pkg *xpkg.Package) error {
	meta := pkg.Meta
	if problems := check.Labels(meta.Labels, meta.Annotations); len(problems) > 0 {
		return check.ErrInvalidMetaLabels.New(nil, "%s of the metadata: %s", problems[0].Path, problems[0].Message)
	}
	if problem := check.Annotations(meta.Annotations); problem != "" {
		return check.ErrMetaAnnotationsTooLarge.New(nil, "%s", problem)
	}
	labels, annotations := p.PackageSpec().CommonLabels, p.PackageSpec().CommonAnnotations
	if problems := check.Labels(labels, annotations); len(problems) > 0 {
		field := strings.NewReplacer(
			"metadata.labels", "spec.commonLabels", "metadata.annotations", "spec.commonAnnotations",
		).Replace(problems[0].Path)
		return ErrCommonMetadata.New(
			nil, "%s of the %s %s: %s", field, strings.ToLower(p.PackageKind()), p.GetName(), problems[0].Message,
		)
	}
	if len(annotations) == 0 {
		return nil
	}
	for _, o := range pkg.Objects {
		summary, err := o.Summary()
		if err != nil {
			return err
		}
		if problem := check.Annotations(desired.Overlay(summary.Annotations, annotations)); problem != "" {
			return ErrCommonMetadata.New(
				nil, "%s %s with spec.commonAnnotations of the %s %s: %s", o.GVK.Kind, o.Name, strings.ToLower(p.PackageKind()),
				p.GetName(), problem,
			)
		}
	}
	return nil
}
