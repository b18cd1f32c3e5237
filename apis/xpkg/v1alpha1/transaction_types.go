package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// A Transaction is a change of several packages that the package manager makes as a whole: it plans the change, refuses
// it before the first write if it cannot succeed, carries it out in order, and waits until all packages are healthy. If
// one of them fails, the manager returns all of them to their former state.
//
// A Transaction is carried out once. Its spec does not change, and its status keeps what was done.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=crossplane;pkg
// +kubebuilder:printcolumn:name="PHASE",type="string",JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Transaction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a Transaction cannot be changed: create another one"
	Spec   TransactionSpec   `json:"spec"`
	Status TransactionStatus `json:"status,omitempty"`
}

// HasEndedWriting reports whether the transaction changes no package any more.
func (t *Transaction) HasEndedWriting() bool {
	return t.Status.Phase.IsFinal() || t.Status.Phase == Watching && t.Keeps()
}

// Keeps reports whether the packages stay as they are after a failure. A policy that watches them overrides that.
func (t *Transaction) Keeps() bool {
	return t.Spec.OnFailure == Keep && t.Status.Policy.WatchTime() == 0
}

// AwaitsPolicy reports whether the transaction waits for a time at which it may start, or for approvals. It holds no
// packages then.
func (t *Transaction) AwaitsPolicy() bool { return t.Status.Phase == Waiting && t.Status.Policy != nil }

// TransactionList is a list of Transactions.
//
// +kubebuilder:object:root=true
type TransactionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Transaction `json:"items"`
}

// TransactionSpec is the desired change.
//
// +kubebuilder:validation:XValidation:rule="size(self.packages) + size(self.remove) > 0",message="name at least one package in packages or remove"
type TransactionSpec struct {
	// Packages are the packages to install or to change, in any order.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=200
	Packages []WantedPackage `json:"packages"`

	// Remove are the packages to uninstall, in any order.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=200
	Remove []RemovedPackage `json:"remove"`

	// OnFailure selects what happens to the packages if one of them fails: Return returns all of them to their former
	// state, Keep leaves them as they are. Default is Return.
	// +optional
	// +kubebuilder:default=Return
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// Deadline is the time in which all packages must be healthy, or gone, from the start of the transaction. Default is
	// 5m. With 0s, the transaction ends when the packages are written, and is refused if it cannot be planned within
	// seconds.
	// +optional
	// +kubebuilder:default="5m"
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// Plan is the digest of the plan that was agreed to. A transaction with another plan is refused. Without it, a
	// transaction is refused if its plan needs consent: it would break dependents, or delete custom resources.
	// +optional
	// +kubebuilder:validation:MaxLength=100
	Plan string `json:"plan,omitempty"`
}

// FailurePolicy selects what happens when a transaction fails.
//
// +kubebuilder:validation:Enum=Return;Keep
type FailurePolicy string

// The failure policies.
const (
	// Return returns all packages to their former state.
	Return FailurePolicy = "Return"
	// Keep leaves all packages as they are.
	Keep FailurePolicy = "Keep"
)

// PackageName identifies a package.
type PackageName struct {
	// Kind of the package.
	// +kubebuilder:validation:Enum=Provider;Configuration;Function
	Kind string `json:"kind"`
	// Name of the package.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Expected is the state of a package before the transaction. A package in another state refuses the transaction.
type Expected struct {
	// UID of the package, or "none" for a package that must not exist.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Generation of the package.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Kinds are the annotations xpkg.dev/kinds and xpkg.dev/deactivate of a Provider, with a semicolon between them.
	// +optional
	Kinds string `json:"kinds,omitempty"`
}

// NoPackage is the UID of a package that must not exist.
const NoPackage types.UID = "none"

// WantedPackage is a package as it shall be.
type WantedPackage struct {
	PackageName `json:",inline"`

	// Labels and annotations are set on the package. A package without the label of a dependency is installed explicitly.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Annotations map[string]string `json:"annotations,omitempty"`
	// Spec of the package, as a whole. A Configuration has no runtime fields.
	Spec v1.ProviderSpec `json:"spec"`
	// RollsBack reports that the package returns to a former version.
	// +optional
	RollsBack bool `json:"rollsBack,omitempty"`
	// Expected is the state of the package to which the transaction applies. Empty accepts any.
	// +optional
	Expected Expected `json:"expected,omitempty"`
}

// RemovedPackage is a package to uninstall.
type RemovedPackage struct {
	PackageName `json:",inline"`

	// OnlyOrphan removes the package only if it was installed as a dependency, and no package requires it.
	// +optional
	OnlyOrphan bool `json:"onlyOrphan,omitempty"`
	// OnDelete answers what happens to the custom resources of the package, as the annotation xpkg.dev/on-delete: orphan
	// keeps them, and cascade=N deletes them if they are at most N. A package with custom resources needs an answer.
	// +optional
	// +kubebuilder:validation:Pattern=`^(orphan|cascade=[0-9]{1,15})$`
	OnDelete string `json:"onDelete,omitempty"`
	// Expected is the state of the package to which the transaction applies. Empty accepts any.
	// +optional
	Expected Expected `json:"expected,omitempty"`
}

// TransactionStatus is the state of a transaction, and what was done.
type TransactionStatus struct {
	// Phase is the state of the transaction. Empty means that the manager has not read it yet.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Reason is the code of a failure, such as PlanMoved.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is what happens or, if there is a reason, what failed.
	// +optional
	Message string `json:"message,omitempty"`
	// Advice is what to do about a failure.
	// +optional
	Advice string `json:"advice,omitempty"`
	// Notes are facts that do not end the transaction.
	// +optional
	Notes []string `json:"notes,omitempty"`
	// StartTime is the time of the start; the deadline counts from it.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is the time at which the last phase was reached.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Holds are the packages that the transaction may change, as Kind/name, and the repositories of those that it
	// installs. Other transactions that concern them, their dependents or their dependencies wait.
	// +optional
	Holds []string `json:"holds,omitempty"`
	// Packages are the packages of the transaction, in the order of its steps.
	// +optional
	Packages []ChangedPackage `json:"packages,omitempty"`
	// Policy is what the ChangePolicy asks of the transaction. It is empty if there was no policy at its start.
	// +optional
	Policy *AskedByPolicy `json:"policy,omitempty"`
	// HealthySince is the time since which all packages have been healthy, if the policy watches them.
	// +optional
	HealthySince *metav1.Time `json:"healthySince,omitempty"`
}

// AskedByPolicy is what a ChangePolicy asks of a transaction.
type AskedByPolicy struct {
	// Policy is the UID and the generation of the ChangePolicy.
	Policy string `json:"policy"`
	// Plan is the digest of the plan, which approvals name.
	Plan string `json:"plan"`
	// Closed is why the transaction may not start now, as a clause. Empty means that it may.
	// +optional
	Closed string `json:"closed,omitempty"`
	// TimeZone of the policy.
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// OpensAt is the time at which the transaction may start; empty for now, or if there is no such time.
	// +optional
	OpensAt *metav1.Time `json:"opensAt,omitempty"`
	// People is the number of users who must approve the plan.
	// +optional
	People int32 `json:"people,omitempty"`
	// Reasons are why an approval is needed, such as more permissions.
	// +optional
	Reasons []string `json:"reasons,omitempty"`
	// ApprovedBy are the users who have approved the plan.
	// +optional
	ApprovedBy []string `json:"approvedBy,omitempty"`
	// Watch is the time for which the packages must stay healthy.
	// +optional
	Watch *metav1.Duration `json:"watch,omitempty"`
}

// WatchTime returns the time for which the packages must stay healthy.
func (a *AskedByPolicy) WatchTime() time.Duration {
	if a == nil || a.Watch == nil {
		return 0
	}
	return a.Watch.Duration
}

// Phase is the state of a transaction.
type Phase string

// The phases. The last four are final.
const (
	// Waiting for another transaction that concerns the same packages, or for what the ChangePolicy asks.
	Waiting Phase = "Waiting"
	// Planning the change, before the first write.
	Planning Phase = "Planning"
	// Applying the change.
	Applying Phase = "Applying"
	// Watching the packages, which are all written, until they are healthy or gone, and for the time of the ChangePolicy.
	// A transaction with the failure policy Keep changes nothing any more, and no other one waits for it.
	Watching Phase = "Watching"
	// Returning the packages to their former state after a failure.
	Returning Phase = "Returning"

	// Refused before the first write.
	Refused Phase = "Refused"
	// Succeeded with all packages healthy.
	Succeeded Phase = "Succeeded"
	// Returned after a failure: the packages are in their former state, as far as the message does not state otherwise.
	Returned Phase = "Returned"
	// Failed: the packages are as the failure has left them.
	Failed Phase = "Failed"
)

// IsFinal reports whether the transaction has ended.
func (p Phase) IsFinal() bool {
	switch p {
	case Refused, Succeeded, Returned, Failed:
		return true
	}
	return false
}

// ChangedPackage is a package of a transaction.
type ChangedPackage struct {
	PackageName `json:",inline"`
	// Package is the wanted reference; empty if the package is removed.
	// +optional
	Package string `json:"package,omitempty"`
	// Agreed is the digest of the consequences of a removal, with which it was planned.
	// +optional
	Agreed string `json:"agreed,omitempty"`
	// Result of the last step of the package, such as created or healthy.
	// +optional
	Result string `json:"result,omitempty"`
	// Before is the state before the transaction; nil for a package that did not exist.
	// +optional
	Before *FormerPackage `json:"before,omitempty"`
}

// FormerPackage is the state of a package before a transaction.
type FormerPackage struct {
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`
	// Healthy reports whether the package was healthy.
	// +optional
	Healthy bool `json:"healthy,omitempty"`
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Spec of the package. A Configuration has no runtime fields.
	Spec v1.ProviderSpec `json:"spec"`
	// Writers are the clients that had written the package, as MANAGER/OPERATION/TIME.
	// +optional
	Writers []string `json:"writers,omitempty"`
}
