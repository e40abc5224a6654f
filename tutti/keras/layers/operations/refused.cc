// keras.ops that are refused by name: their meaning is code, complex numbers, chance or a factorization.
#include "tutti/keras/layers/operations/rows.h"

namespace tutti::keras {

Rows refused_operations() {
  constexpr std::string_view code = "it carries Python code, which is not in the file; hint: write the steps as layers and operations";
  constexpr std::string_view complex_numbers = "complex numbers are not done; hint: real and imaginary parts as two tensors are";
  constexpr std::string_view factorization = "matrix factorizations are not done";
  constexpr std::string_view random_numbers = "its result is random";
  static const LayerRow rows[] = {
      refused("AssociativeScan", code),
      refused("CTCDecode", "decoding of sequences is not done; hint: end the model before it"),
      refused("CTCLoss", "it is a loss for training; hint: end the model before it"),
      refused("Cholesky", factorization),
      refused("CholeskyInverse", factorization),
      refused("Cond", code),
      refused("Det", factorization),
      refused("Eig", factorization),
      refused("Eigh", factorization),
      refused("ElasticTransform", random_numbers),
      refused("FakeQuantWithMinMaxVars", "it belongs to quantization-aware training, which is not read"),
      refused("ForiLoop", code),
      refused("Function", "it is the inside of a Functional model, which a file holds as Functional"),
      refused("Inv", factorization),
      refused("JVP", code),
      refused("Logdet", factorization),
      refused("Lstsq", factorization),
      refused("LuFactor", factorization),
      refused("Map", code),
      refused("MatrixRank", factorization),
      refused("Pinv", factorization),
      refused("Polar", complex_numbers),
      refused("Qr", factorization),
      refused("SVD", factorization),
      refused("Scan", code),
      refused("Slogdet", factorization),
      refused("Solve", factorization),
      refused("SolveTriangular", factorization),
      refused("Switch", code),
      refused("VectorizedMap", code),
      refused("ViewAsComplex", complex_numbers),
      refused("ViewAsReal", complex_numbers),
      refused("WhileLoop", code),
  };
  return rows;
}

}  // namespace tutti::keras
