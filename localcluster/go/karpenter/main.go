// Command karpenter is Karpenter with the nodes of its kwok provider: Node objects without
// machines. It ends when its parent does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
)

func main() {
	if os.Getenv("LOCALCLUSTER_LIFELINE") != "" {
		go endWithParent()
	}
	ctx, op := operator.NewOperator()
	client, clock := op.GetClient(), op.Clock
	types, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "karpenter: instance types: %v\n", err)
		os.Exit(2)
	}
	plain := stocked{kwok.NewCloudProvider(ctx, client, types), soldOut()}
	cloud := overlay.Decorate(plain, client, op.InstanceTypeStore)
	cluster := state.NewCluster(clock, client, cloud)
	all := controllers.NewControllers(
		ctx, op.Manager, clock, client, op.EventRecorder, cloud, plain, cluster, op.InstanceTypeStore,
	)
	op.WithControllers(ctx, all...).Start(ctx)
}

// stocked is a cloud that has sold out of some instance types.
type stocked struct {
	cloudprovider.CloudProvider
	soldOut []string
}

// soldOut returns the names of the instance types that nobody gets, from the environment.
func soldOut() []string {
	return strings.FieldsFunc(os.Getenv("LOCALCLUSTER_SOLD_OUT"), func(r rune) bool { return r == ',' })
}

// Create fails as a real cloud does if it has none of the instance types that would do.
func (s stocked) Create(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	for _, requirement := range claim.Spec.Requirements {
		if requirement.Key != corev1.LabelInstanceTypeStable {
			continue
		}
		left := func(name string) bool { return !slices.Contains(s.soldOut, name) }
		if !slices.ContainsFunc(requirement.Values, left) {
			names := strings.Join(requirement.Values, ", ")
			return nil, cloudprovider.NewInsufficientCapacityError(fmt.Errorf("no %s is left", names))
		}
	}
	return s.CloudProvider.Create(ctx, claim)
}

// endWithParent ends this process when its standard input closes: its parent holds the other end.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
