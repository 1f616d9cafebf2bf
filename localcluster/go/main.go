// Command controlplane is a Kubernetes control plane in one file: its first
// argument names the program to be, the others are that program's own.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func main() {
	if len(os.Args) < 2 {
		usage("no program named")
	}
	if os.Getenv("LOCALCLUSTER_LIFELINE") != "" {
		go endWithParent()
	}
	os.Args = os.Args[1:]
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		run(apiserver.NewAPIServerCommand())
	case "kube-scheduler":
		run(scheduler.NewSchedulerCommand())
	case "kube-controller-manager":
		run(controllermanager.NewControllerManagerCommand())
	case "kubectl":
		run(kubectl.NewDefaultKubectlCommand())
	default:
		usage(fmt.Sprintf("no program %q", name))
	}
}

// endWithParent ends this process when the parent that holds the other end of
// its standard input is gone, however it went.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func usage(problem string) {
	fmt.Fprintf(os.Stderr, "controlplane: %s; give one of etcd, kube-apiserver, kube-scheduler, "+
		"kube-controller-manager, kubectl\n", problem)
	os.Exit(2)
}
