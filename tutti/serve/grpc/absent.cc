// Instead of server.cc where gRPC's headers are not there when the program is built.
#include "tutti/base/error.h"
#include "tutti/serve/grpc/server.h"

namespace tutti::serve {

class GrpcServer::Server {};

bool has_grpc() { return false; }
GrpcServer::GrpcServer(Models&, Scheduler&, GrpcOptions) {
  fail<Unsupported>("serve",
                    "this program was built without gRPC; hint: apt-get install libgrpc++-dev protobuf-compiler-grpc, and build again");
}
GrpcServer::~GrpcServer() = default;
std::string GrpcServer::address() const { return ""; }
void GrpcServer::stop(std::chrono::milliseconds) {}

}  // namespace tutti::serve
