// Package planner computes the effect of an install, an update or an uninstall on a cluster before the first write.
//
// A Planner reads packages, revisions, the metadata of objects, and content. It decides with the pure functions of the
// package manager (internal/revision, pkg/desired, pkg/plan), so that a Plan equals the writes of the manager.
// Encoding, decoding and comparing plans is pure.
package planner

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/changepolicy"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/install"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// The type of a stored plan.
const (
	APIVersion = "xpkg.dev/v1alpha1"
	Kind       = "Plan"
)

// Operation is the operation of a plan.
type Operation string

// The operations.
const (
	// Install creates a package.
	Install Operation = "install"
	// Update changes the spec of an installed package, if it differs.
	Update Operation = "update"
	// Uninstall deletes a package.
	Uninstall Operation = "uninstall"
)

// Plan is the effect of an operation on one package. Equal states of a cluster have equal plans: a
// plan contains no times but that at which the ChangePolicy lets it start, and its lists are ordered.
type Plan struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Operation  Operation `json:"operation"`
	// RollsBack reports whether an update returns the package to a former revision.
	RollsBack bool `json:"-"`
	// WithoutRuntime reports that neither the manager nor another system runs a runtime of the package.
	WithoutRuntime bool `json:"-"`
	// Cluster identifies the cluster: the UID of its namespace kube-system. It is empty if the client may not read the
	// namespace.
	Cluster types.UID `json:"cluster,omitempty"`
	Package Package   `json:"package"`
	// Adopts reports whether the package was installed as a dependency and becomes explicitly installed, so that it is no
	// longer removed when no package requires it.
	Adopts bool `json:"adopts,omitempty"`
	// Adoptions are the objects of users that the operation newly allows the package to adopt.
	Adoptions []string `json:"adoptions,omitempty"`
	// Accepts are the rules that the operation newly allows the version to break for custom resources, as "CRD/RULE".
	Accepts []string `json:"accepts,omitempty"`
	// Kinds are the managed resources of a Provider with inactive ones, or whose kinds are chosen anew; otherwise nil.
	Kinds *ActiveKinds `json:"kinds,omitempty"`
	// Content is the content to install, or nil for an uninstall.
	Content *Content `json:"content,omitempty"`
	// Revisions are the writes to revisions, in order.
	Revisions []RevisionChange `json:"revisions,omitempty"`
	// Objects are the writes to objects, in order. With a refusal, no object is changed.
	Objects plan.Plan `json:"objects"`
	// LeftOut are the webhook configurations of a package without a runtime, or nil. They are not compared.
	LeftOut *LeftOut `json:"leftOut,omitempty"`
	// Findings are the reasons why the manager refuses the package or one that is added with it, in the order of its
	// checks. With a finding, no object is changed.
	Findings []install.Finding `json:"findings,omitempty"`
	// Permissions are the changes to the permissions of the runtime, or nil if there are none.
	Permissions *Permissions `json:"permissions,omitempty"`
	// Maintained is the install object that would undo the operation, or nil. If it is set, no object is changed, and a
	// command changes the install object instead.
	Maintained *Maintenance `json:"maintained,omitempty"`
	// Webhooks are the rules for resources that the package does not define, or nil if there are
	// none.
	Webhooks *Webhooks `json:"webhooks,omitempty"`
	// Dependencies are the direct dependencies of the content. While one of them is not satisfied, no object is changed.
	Dependencies []Dependency `json:"dependencies,omitempty"`
	// AddedPackages are the dependencies that the manager installs or moves with the package, dependencies first.
	AddedPackages []AddedPackage `json:"addedPackages,omitempty"`
	// Upgrades is the dependency upgrade policy that the caller assumes. It is empty if the manager announces its policy.
	Upgrades graph.Policy `json:"dependencyUpgrades,omitempty"`
	// Remedy is the sentence about dependents that the plan breaks, and about incompatible dependencies that the manager
	// does not move: the updates with which all packages fit together, or the commands that remove the dependents of a
	// deleted package.
	Remedy string `json:"remedy,omitempty"`
	// Orphans are the packages that no package requires after the operation.
	Orphans []Orphan `json:"orphans,omitempty"`
	// Breaks are the packages whose dependencies would no longer be satisfied, ordered by kind and name.
	Breaks []Broken `json:"breaks,omitempty"`
	// CustomResources are the custom resources that an uninstall deletes with their CRDs.
	CustomResources []CustomResources `json:"customResources,omitempty"`
	// OnDelete is the answer with which the package is deleted. It is not compared.
	OnDelete revision.OnDelete `json:"onDelete,omitzero"`
	// Preconditions are the inputs of the plan.
	Preconditions Preconditions `json:"preconditions"`
	// FieldChanges are the fields of the package's spec that an update changes, and RuntimeChanges the fields in which the
	// spec of its runtime configuration differs from the current one.
	FieldChanges   []SpecChange `json:"fieldChanges,omitempty"`
	RuntimeChanges []SpecChange `json:"runtimeChanges,omitempty"`
	// KindChanges are the changes of the fields of the kinds that the package defines now and afterwards. They follow from
	// the digests, and are not compared.
	KindChanges []crddiff.ChangedCRD `json:"kindChanges,omitempty"`
	// Policy is what the ChangePolicy asks of the whole change, or nil. It is not compared.
	Policy *changepolicy.Asked `json:"policy,omitempty"`
	// Warnings are for users, and are not compared.
	Warnings []string `json:"warnings,omitempty"`
	// usual are the warnings that describe the usual course of the operation.
	usual []string
}

// Verb returns the operation as a user names it.
func (p *Plan) Verb() string {
	if p.RollsBack {
		return "roll back"
	}
	return string(p.Operation)
}

// Package is the package object that the operation writes or deletes.
type Package struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// From is the installed version, and To the planned one. Each can be nil.
	From *Version `json:"from,omitempty"`
	To   *Version `json:"to,omitempty"`
	// Object is the package to write, with the defaults of the API server. It is empty for an
	// uninstall.
	Object json.RawMessage `json:"object,omitempty"`
}

// Version is a reference with the digest of its content, which is empty if it is unknown.
type Version struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest,omitempty"`
}

// Content is the content to install.
type Content struct {
	// Reference is spec.package as the user requested it.
	Reference string `json:"reference"`
	// Resolved is the image that is requested from a registry, after rewriting by ImageConfigs.
	Resolved string `json:"resolved"`
	Digest   string `json:"digest"`
	// Signers have signed the content, as the ImageConfigs require. They are not compared.
	Signers []signature.Verdict `json:"signers,omitempty"`
}

// RevisionAction is a write to a revision.
type RevisionAction = revision.Action

// The writes to revisions.
const (
	CreateRevision     = revision.Create
	ActivateRevision   = revision.Activate
	DeactivateRevision = revision.Deactivate
	UpdateRevision     = revision.Update
	NumberRevision     = revision.Number
	CollectRevision    = revision.Collect
)

// RevisionChange is one write of a revision.
type RevisionChange struct {
	Action RevisionAction `json:"action"`
	Name   string         `json:"name"`
	// Number and State are the values after the change.
	Number int64            `json:"number"`
	State  v1.RevisionState `json:"state"`
	Digest string           `json:"digest,omitempty"`
}

// Dependency is a dependency of the content.
type Dependency struct {
	Package    string      `json:"package"`
	Constraint string      `json:"constraint,omitempty"`
	State      graph.State `json:"state"`
	// Optional reports whether the dependency is optional. Kind is the kind that the author stated,
	// or empty.
	Optional bool   `json:"optional,omitempty"`
	Kind     string `json:"kind,omitempty"`
	// CRD is the kind of custom resources that the content requires and for which the package is selected, or empty.
	CRD string `json:"crd,omitempty"`
	// Installed is the installed reference, or empty if there is none.
	Installed string `json:"installed,omitempty"`
}

// AddedPackage is a dependency that is installed or moved for its dependents.
type AddedPackage struct {
	Kind string `json:"kind"`
	// Name is the name of the package object, and From its current version. Both are empty for a package that is not
	// installed.
	Name      string `json:"name,omitempty"`
	From      string `json:"from,omitempty"`
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	// Signers have signed the content, as the ImageConfigs require. They are not compared.
	Signers []signature.Verdict `json:"signers,omitempty"`
	// RequiredBy lists the repositories of the dependents.
	RequiredBy []string `json:"requiredBy"`
	// Objects are the changes of its objects, and Permissions the changes of the permissions of its
	// runtime, or nil. Both are empty if the content of the package is unknown.
	Objects     plan.Plan    `json:"objects,omitzero"`
	Permissions *Permissions `json:"permissions,omitempty"`
	// LeftOut are its webhook configurations if it has no runtime, or nil. They are not compared.
	LeftOut *LeftOut `json:"leftOut,omitempty"`
	// KindChanges are the changes of the fields of the kinds that a moved package defines now and afterwards. They are not
	// compared.
	KindChanges []crddiff.ChangedCRD `json:"kindChanges,omitempty"`
}

// Short returns the package in the form of command arguments. A new package has the name that the manager gives it if
// no other package has that name.
func (a AddedPackage) Short() string {
	name := a.Name
	if name == "" {
		if ref, err := oci.ParseReference(a.Reference, oci.ParseOptions{}); err == nil {
			name = oci.ToDNSLabel(ref.Repository)
		}
	}
	return Package{Kind: a.Kind, Name: name}.Short()
}

// CustomResources are the custom resources of a CRD in the cluster.
type CustomResources struct {
	// CRD is the name of the CRD.
	CRD   string `json:"crd"`
	Count int64  `json:"count"`
	// Digest is the digest of their UIDs. It is empty if they were only counted, as if there are more than 10,000.
	Digest string `json:"digest,omitempty"`
	// Unknown is the reason why they could not be counted.
	Unknown string `json:"unknown,omitempty"`
	// uids are their UIDs, in order. They are not stored.
	uids []types.UID
}

// String returns the CRD with the number, or with the reason why it is unknown.
func (r CustomResources) String() string {
	if r.Unknown != "" {
		return r.CRD + ": " + r.Unknown
	}
	return fmt.Sprintf("%s: %d", r.CRD, r.Count)
}

// identify records the UIDs of custom resources, and their digest.
func (r *CustomResources) identify(uids []types.UID) {
	slices.Sort(uids)
	hash := sha256.New()
	for _, uid := range uids {
		fmt.Fprintln(hash, uid)
	}
	r.uids, r.Count, r.Digest = uids, int64(len(uids)), fmt.Sprintf("sha256:%x", hash.Sum(nil))
}

// customResourcesOf returns the custom resources of a CRD that a plan deletes. A plan omits CRDs without custom
// resources.
func (p *Plan) customResourcesOf(crd string) CustomResources {
	if i := slices.IndexFunc(p.CustomResources, func(r CustomResources) bool { return r.CRD == crd }); i >= 0 {
		return p.CustomResources[i]
	}
	return CustomResources{CRD: crd}
}

// newSince returns the number of custom resources that are not among those of a former plan. It is known only if both
// were identified.
func (r CustomResources) newSince(was CustomResources) int {
	if was.Digest == "" || r.Digest == was.Digest {
		return 0
	}
	created := 0
	for _, uid := range r.uids {
		if _, existed := slices.BinarySearch(was.uids, uid); !existed {
			created++
		}
	}
	return created
}

// Preconditions are the inputs of a plan that its changes do not contain. A plan is not applied if
// one of them has changed.
type Preconditions struct {
	// UID, Generation and Spec are fields of the package object. They and Kinds are empty if it does not exist.
	UID        types.UID       `json:"uid,omitempty"`
	Generation int64           `json:"generation,omitempty"`
	Spec       json.RawMessage `json:"spec,omitempty"`
	// Kinds are the annotations that choose the kinds of a Provider, as [activation.Wish] returns them.
	Kinds string `json:"kinds,omitempty"`
	// Revisions are the revisions of the package, ordered by name.
	Revisions []Revision `json:"revisions,omitempty"`
	// Installed are the installed dependencies of the package, and the packages that are moved for
	// it, ordered by kind and name.
	Installed []Installed `json:"installed,omitempty"`
}

// Revision is an existing revision.
type Revision struct {
	Name   string           `json:"name"`
	UID    types.UID        `json:"uid"`
	Number int64            `json:"number"`
	State  v1.RevisionState `json:"state"`
	Digest string           `json:"digest,omitempty"`
}

// Installed is an installed package on which a plan depends.
type Installed struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Reference string `json:"reference"`
	Digest    string `json:"digest,omitempty"`
}

// WritesPackage reports whether the operation would write the package object.
func (p *Plan) WritesPackage() bool {
	consents := len(p.Adoptions)+len(p.Accepts) > 0 || p.Webhooks != nil && p.Webhooks.Consents ||
		p.Kinds != nil && len(p.Kinds.Choices) > 0
	return p.Operation != Update || p.Adopts || consents || !sameJSON(p.Preconditions.Spec, specIn(p.Package.Object))
}

// AllLeftOut returns the objects that are left out, of the package and of the packages that are added with it.
func (p *Plan) AllLeftOut() []LeftOut {
	var out []LeftOut
	if p.LeftOut != nil {
		out = append(out, *p.LeftOut)
	}
	for _, a := range p.AddedPackages {
		if a.LeftOut != nil {
			out = append(out, *a.LeftOut)
		}
	}
	return out
}

// HasChanges reports whether anything would change.
func (p *Plan) HasChanges() bool {
	return p.WritesPackage() || len(p.Revisions)+len(p.Objects.Changes)+len(p.Objects.Refusals) > 0
}

// WaitsForDependencies reports whether objects have to wait for a dependency that the manager does not install with the
// package.
func (p *Plan) WaitsForDependencies() bool {
	return len(p.unsatisfied()) > 0 || slices.ContainsFunc(p.Dependencies, p.lacksKind)
}

// lacksKind reports whether the package of a dependency does not contain the kind for which it was selected, and is not
// moved.
func (p *Plan) lacksKind(d Dependency) bool {
	return d.State == graph.NotProvided && !p.moves(d.Package)
}

// unsatisfied returns the dependencies that are neither installed nor added with the package.
func (p *Plan) unsatisfied() []string {
	return p.needs(func(d Dependency) bool {
		return d.State == graph.Incompatible && !p.moves(d.Package) || d.State == graph.Missing && len(p.AddedPackages) == 0
	})
}

// coming returns the dependencies that are rolling out, or are added with the package.
func (p *Plan) coming() []string {
	return p.needs(func(d Dependency) bool {
		return d.State == graph.Progressing || d.State == graph.Incompatible && p.moves(d.Package)
	})
}

// needs returns the repository and the constraint of each dependency that satisfies a predicate.
func (p *Plan) needs(which func(Dependency) bool) []string {
	var out []string
	for _, d := range p.Dependencies {
		if which(d) {
			out = append(out, strings.TrimSpace(d.Package+" "+d.Constraint))
		}
	}
	return out
}

// moves reports whether the package of a repository is moved with the planned package.
func (p *Plan) moves(repository string) bool {
	return slices.ContainsFunc(p.AddedPackages, func(b AddedPackage) bool {
		return b.From != "" && oci.SameRepository(b.Reference, repository)
	})
}

// Blocked reports whether a problem prevents every change of objects.
func (p *Plan) Blocked() bool {
	return len(p.Findings) > 0 || len(p.Objects.Refusals) > 0 || p.WaitsForDependencies()
}

// refuse adds the finding of a failed check. It returns false if the failure is no refusal.
func (p *Plan) refuse(s install.Stage, failure error) bool {
	found, refused := install.Find(s, failure)
	if refused {
		p.Findings = append(p.Findings, found)
	}
	return refused
}

// CountCustomResources returns the number of custom resources that an uninstall deletes, and the number of CRDs whose
// custom resources cannot be counted.
func (p *Plan) CountCustomResources() (resources int64, uncounted int) {
	for _, r := range p.CustomResources {
		if resources += r.Count; r.Unknown != "" {
			uncounted++
		}
	}
	return resources, uncounted
}
